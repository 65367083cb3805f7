"""How dispatch groups run, as users say it."""

from __future__ import annotations

from typing import Any, Mapping

from eagle.errors import refusal

_POLICIES = ("auto", "switch", "segmented", "predicated")


def policies(where: str, dispatch: Any) -> list[tuple[str, str]]:
    """(group, policy) rows of what ``dispatch=`` says; an empty group is all of them."""
    if dispatch is None:
        return []
    chosen = {"": dispatch} if isinstance(dispatch, str) else dispatch
    if not isinstance(chosen, Mapping):
        raise refusal(
            "WRONG_TYPE",
            f"{where}: dispatch: expected a policy, or policies by group, found {type(dispatch).__name__}",
        )
    for group, policy in chosen.items():
        if policy not in _POLICIES:
            raise refusal(
                "BAD_VALUE",
                f"{where}: dispatch: {policy!r}{f' for {group!r}' if group else ''} is no policy; expected "
                + ", ".join(map(repr, _POLICIES)),
            )
    return [(str(group), str(policy)) for group, policy in chosen.items()]
