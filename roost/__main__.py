"""`roost` and `python -m roost`."""

from roost.cli.main import run_cli


def main() -> None:
    run_cli()


if __name__ == "__main__":
    main()
