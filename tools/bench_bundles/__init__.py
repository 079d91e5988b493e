"""Steps of `make_bench_bundles.py`: what the benchmarks' models are made of."""
