from datetime import date

import pytest
from pydantic import ValidationError

from roost.agents.models.gateway.model import UsageCount, UsageSummary
from roost.agents.models.usage.api import UsageQuery, UsageReport
from roost.agents.models.usage.model import UsagePeriod


def test_a_report_has_every_day_and_the_total() -> None:
    count = UsageCount(1, 10, 3)
    summary = UsageSummary({"2026-01-02": count}, {"openai/gpt-5": count}, {"": count})
    report = UsageReport.from_summary(UsagePeriod(date(2026, 1, 1), date(2026, 1, 2)), summary)
    none, some = ({"requests": n, "promptTokens": n * 10, "completionTokens": n * 3} for n in (0, 1))
    assert report.model_dump(mode="json", by_alias=True) == {
        "from": "2026-01-01",
        "to": "2026-01-02",
        "total": some,
        "days": [{"day": "2026-01-01", **none}, {"day": "2026-01-02", **some}],
        "models": [{"model": "openai/gpt-5", **some}],
        "agents": [{"agentId": None, **some}],
    }


@pytest.mark.parametrize("day", ["", "0", "1767225600", "yesterday", "2026-13-01", "2026-01-01T00:00:00Z"])
def test_a_day_is_a_date(day: str) -> None:
    with pytest.raises(ValidationError, match="must be a date like 2026-01-31"):
        UsageQuery.model_validate({"from": day})
