from roost.agents.lifecycle.versions import model


def test_releases_are_in_order_and_pre_releases_are_left_out() -> None:
    given = ["2026.9.6", "2026.10.1", "2026.9.6", "2026.9.7-beta.1", "2026.9.6-1", "1.0rc1", "0.19.0"]
    assert list(model.sort_releases(given)) == ["2026.10.1", "2026.9.6-1", "2026.9.6", "0.19.0"]


def test_versions_are_told_from_other_texts() -> None:
    assert all(map(model.is_version, ("1.0.0", "2026.9.6-beta.1", "0.19.0+a")))
    assert not any(map(model.is_version, ("", "latest", "../1", "-1", "1.0\n", "1" * 65, "1 0")))


def test_numbers_of_any_length_are_compared() -> None:
    assert model.version_key("1." + "9" * 10_000) > model.version_key("1.2")
