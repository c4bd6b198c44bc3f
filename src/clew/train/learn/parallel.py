"""Data-parallel training: each process has the whole model and a shard of the questions; gradients
are averaged. Started by `torchrun` or `accelerate launch`; a single process is a group of one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from clew.errors import ConfigError

Item = TypeVar("Item")


@dataclass(frozen=True)
class Team:
    """This process's rank and the number of processes."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the main process, which writes files and logs."""
        return self.rank == 0

    def share(self, items: Sequence[Item]) -> list[Item]:
        """Return this process's shard of the items."""
        return list(items[self.rank :: self.size])

    def even(self, questions: int) -> None:
        """Raise ConfigError unless `questions` divides evenly: all must take equally many steps."""
        if questions % self.size:
            raise ConfigError(
                f"{questions} questions a step cannot be shared by {self.size} processes; set "
                "`questions` to a multiple"
            )

    def average(self, parameters: Iterable[Any]) -> None:
        """Average gradients over all processes; a missing one counts as 0."""
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
        """Broadcast the main process's weights; adapters are initialised at random."""
        if self.size == 1:
            return
        import torch.distributed as dist

        for parameter in parameters:
            dist.broadcast(parameter.data, src=0)

    def gathered(self, value: Any) -> list[Any]:
        """Gather the value of every process, in rank order."""
        if self.size == 1:
            return [value]
        import torch.distributed as dist

        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def mean(self, value: float) -> float:
        """Return the mean over processes; dividing by it makes averaged gradients exact."""
        return float(sum(self.gathered(value)) / self.size)

    def agreed(self, value: Any) -> Any:
        """Return the main process's value (e.g. whether to stop); also a barrier."""
        if self.size == 1:
            return value
        import torch.distributed as dist

        values = [value]
        dist.broadcast_object_list(values, src=0)
        return values[0]


def team() -> Team:
    """Join the process group this process was launched with, if any."""
    import torch
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_torchelastic_launched():
        return Team()
    if not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    if torch.cuda.is_available():
        torch.cuda.set_device(dist.get_node_local_rank())
    return Team(dist.get_rank(), dist.get_world_size())
