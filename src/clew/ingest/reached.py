"""Chat wrapper that aborts the add when the endpoint was never reachable."""

from dataclasses import dataclass, field

from clew.errors import ConfigError
from clew.llm.chat import Chat, EndpointError, Reply, Request, TextCallback

# Network errors that only a reachable host causes, or that may pass with time.
_REACHABLE_ERRORS = (TimeoutError, ConnectionResetError, BrokenPipeError)


@dataclass(eq=False)
class FailFastChat:
    """Distinguishes an endpoint that does not exist from one that fails now and then.

    A document whose calls fail is written without a graph, to be retried later; but where no call
    was ever answered and nothing can be connected to, that would happen to every document.
    """

    inner: Chat
    _answered: bool = field(default=False, init=False)
    _error_message: str = field(default="", init=False)

    @property
    def name(self) -> str:
        """Name of the wrapped model."""
        return self.inner.name

    async def __call__(self, request: Request, /, hear: TextCallback | None = None) -> Reply:
        """Call the model; a cached reply does not count as reaching the endpoint."""
        if self._error_message:  # concurrent calls need not wait for their own connection error
            raise ConfigError(self._error_message)
        try:
            reply = await self.inner(request, hear)
        except EndpointError as error:
            self._answered = self._answered or error.status is not None
            if self._answered or not _is_unreachable(error):
                raise
            message = str(error).rstrip(".")
            self._error_message = f"{message}; stopped, so that nothing is written without a graph."
            raise ConfigError(self._error_message) from error
        self._answered = self._answered or reply.usage.calls > 0
        return reply


def _is_unreachable(error: BaseException | None) -> bool:
    """Return whether no connection was possible, judged by the network error in the cause chain."""
    while error is not None:
        if isinstance(error, OSError) and not isinstance(error, _REACHABLE_ERRORS):
            return True
        error = error.__cause__
    return False
