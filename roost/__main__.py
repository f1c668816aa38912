"""`roost` and `python -m roost`."""

from roost.cli.command_names import run_program


def main() -> None:
    run_program()


if __name__ == "__main__":
    main()
