"""`python -m tokforge_models` is `tokforge`."""

from tokforge_models.cli import main

if __name__ == "__main__":
    main()
