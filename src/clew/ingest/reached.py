"""A model that nobody has heard yet: when nothing answers at its address, all stops at once."""

from dataclasses import dataclass, field

from clew.errors import ConfigError
from clew.llm.chat import Chat, EndpointError, Hear, Reply, Request

# The network's errors that only something at the other end can cause, or that time may cure.
_THERE = (TimeoutError, ConnectionResetError, BrokenPipeError)


@dataclass(eq=False)
class Reached:
    """Tells an address where nothing is from one that fails now and then.

    A document whose calls fail is written without a graph, to be taken up again; but where no call
    was ever answered and nothing is there to answer, that would be so for each of them.
    """

    inner: Chat
    _answered: bool = field(default=False, init=False)
    _stopped: str = field(default="", init=False)

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: Hear | None = None) -> Reply:
        """Ask; a reply that was only remembered says nothing about the address."""
        if self._stopped:  # one that was waiting for the first need not find out for itself
            raise ConfigError(self._stopped)
        try:
            reply = await self.inner(request, hear)
        except EndpointError as error:
            self._answered = self._answered or error.status is not None
            if self._answered or not _nothing_there(error):
                raise
            said = str(error).rstrip(".")
            self._stopped = f"{said}; stopped, so that nothing is written without a graph."
            raise ConfigError(self._stopped) from error
        self._answered = self._answered or reply.usage.calls > 0
        return reply


def _nothing_there(error: BaseException | None) -> bool:
    """Whether nothing could be connected to, as the network's own error at the bottom tells."""
    while error is not None:
        if isinstance(error, OSError) and not isinstance(error, _THERE):
            return True
        error = error.__cause__
    return False
