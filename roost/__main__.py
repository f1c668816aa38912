"""`roost` and `python -m roost`."""

from roost.cli.main import app


def main() -> None:
    app()


if __name__ == "__main__":
    main()
