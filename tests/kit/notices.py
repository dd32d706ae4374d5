"""What would be reported, kept in place of being sent: by the enforcer's parts, or by a channel."""

from ovirt_enforcer.log import Notice, NoticeKind
from ovirt_enforcer.notifications import Notifications, Receipt


class KeptNotices(Notifications):
    """Keeps what is reported; every sentence can be made of what is known."""

    def __init__(self) -> None:
        super().__init__()
        self.notices: list[Notice] = []

    def send(self, notice: Notice) -> Receipt:
        assert self.sentence(notice.kind, notice.facts)
        assert notice.kind.facts <= notice.facts.keys() | {"engine"}
        self.notices.append(notice)
        return super().send(notice)

    @property
    def kinds(self) -> list[NoticeKind]:
        return [notice.kind for notice in self.notices]


class KeepingChannel:
    """A channel that keeps what it gets, and can be made to say no."""

    name = "kept"

    def __init__(self) -> None:
        self.heard: list[Notice] = []
        self.refusals: list[Exception] = []

    def send(self, notice: Notice) -> None:
        if self.refusals:
            raise self.refusals.pop()
        self.heard.append(notice)

    @property
    def kinds(self) -> list[NoticeKind]:
        return [notice.kind for notice in self.heard]
