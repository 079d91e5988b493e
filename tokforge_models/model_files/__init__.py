"""What the files of a bundle say, read without MNN."""
