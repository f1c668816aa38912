from roost.agents.models.gateway.model import MAX_OFFERED_MODELS, NO_MODEL, ModelInfo, ModelOffer, ModelUsage


def test_an_engine_is_told_of_one_model_at_least_and_of_so_many_at_most() -> None:
    many = [ModelInfo(f"m{number}", "near") for number in range(MAX_OFFERED_MODELS + 1)]
    assert ModelOffer(many).ids == [model.id for model in many[:-1]]
    assert ModelOffer((), ["no answer"]).ids == [NO_MODEL]


def test_usages_of_one_key_add_up() -> None:
    one = ModelUsage("t", "a", "near/m", "2026-01-01", 1, 2, 3)
    assert one + one == ModelUsage("t", "a", "near/m", "2026-01-01", 2, 4, 6)
