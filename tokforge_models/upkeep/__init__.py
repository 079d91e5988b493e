"""What happens to a bundle after its download: checked, mended, moved, frozen, removed."""
