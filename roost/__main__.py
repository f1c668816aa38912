"""`roost` and `python -m roost`."""

import os


def main() -> None:
    if "_ROOST_COMPLETE" in os.environ:
        from roost.cli.command_names import print_names  # without the imports of the program

        if print_names():
            return
    from roost.cli.main import run_cli

    run_cli()


if __name__ == "__main__":
    main()
