"""Several processes, one model each, the same weights in all: questions are shared out, gradients
averaged. Started by `torchrun` or `accelerate launch`; a process alone is a team of one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from clew.errors import ConfigError

Item = TypeVar("Item")


@dataclass(frozen=True)
class Team:
    """Which of how many this process is."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """The one that writes files and speaks."""
        return self.rank == 0

    def share(self, items: Sequence[Item]) -> list[Item]:
        """This process's part of something all have."""
        return list(items[self.rank :: self.size])

    def even(self, questions: int) -> None:
        """Refuse what cannot be shared out evenly: all must take the same number of steps."""
        if questions % self.size:
            raise ConfigError(
                f"{questions} questions a step cannot be shared by {self.size} processes; set "
                "`questions` to a multiple"
            )

    def average(self, parameters: Iterable[Any]) -> None:
        """Make every gradient the mean of all processes'; one that has none counts as 0."""
        if self.size == 1:
            return
        import torch
        import torch.distributed as dist

        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)
            parameter.grad /= self.size

    def align(self, parameters: Iterable[Any]) -> None:
        """Give all processes the first one's weights; adapters begin at random."""
        if self.size == 1:
            return
        import torch.distributed as dist

        for parameter in parameters:
            dist.broadcast(parameter.data, src=0)

    def gathered(self, value: Any) -> list[Any]:
        """What every process says, the first one's first."""
        if self.size == 1:
            return [value]
        import torch.distributed as dist

        held: list[Any] = [None] * self.size
        dist.all_gather_object(held, value)
        return held

    def mean(self, value: float) -> float:
        """The mean of what all say; averaged gradients of shares by it are those of the whole."""
        return float(sum(self.gathered(value)) / self.size)

    def agreed(self, value: Any) -> Any:
        """What the first process says: whether to stop, for one."""
        if self.size == 1:
            return value
        import torch.distributed as dist

        held = [value]
        dist.broadcast_object_list(held, src=0)
        return held[0]


def team() -> Team:
    """Join the processes this one was started with, if any."""
    import torch
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_torchelastic_launched():
        return Team()
    if not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    if torch.cuda.is_available():
        torch.cuda.set_device(dist.get_node_local_rank())
    return Team(dist.get_rank(), dist.get_world_size())
