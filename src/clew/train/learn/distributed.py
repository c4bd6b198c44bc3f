"""Data-parallel training: each process has the whole model and a shard of the questions; gradients
are averaged. Started by `torchrun` or `accelerate launch`; a single process is a group of one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from clew.errors import ConfigError

Item = TypeVar("Item")


@dataclass(frozen=True)
class ProcessGroup:
    """This process's rank and the number of processes."""

    rank: int = 0
    size: int = 1

    @property
    def is_main(self) -> bool:
        """Whether this is the main process, which writes files and logs."""
        return self.rank == 0

    def shard(self, items: Sequence[Item]) -> list[Item]:
        """Return this process's shard of the items."""
        return list(items[self.rank :: self.size])

    def check_divisible(self, questions: int) -> None:
        """Raise ConfigError unless `questions` divides evenly: all must take equally many steps."""
        if questions % self.size:
            raise ConfigError(
                f"{questions} questions a step cannot be shared by {self.size} processes; set "
                "`questions` to a multiple"
            )

    def average_gradients(self, parameters: Iterable[Any]) -> None:
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

    def broadcast_weights(self, parameters: Iterable[Any]) -> None:
        """Broadcast the main process's weights; adapters are initialised at random."""
        if self.size == 1:
            return
        import torch.distributed as dist

        for parameter in parameters:
            dist.broadcast(parameter.data, src=0)

    def gather(self, value: Any) -> list[Any]:
        """Gather the value of every process, in rank order."""
        if self.size == 1:
            return [value]
        import torch.distributed as dist

        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    def reduce_mean(self, value: float) -> float:
        """Return the mean over processes; dividing by it makes averaged gradients exact."""
        return float(sum(self.gather(value)) / self.size)

    def broadcast(self, value: Any) -> Any:
        """Return the main process's value (e.g. whether to stop); also a barrier."""
        if self.size == 1:
            return value
        import torch.distributed as dist

        values = [value]
        dist.broadcast_object_list(values, src=0)
        return values[0]


def join_process_group() -> ProcessGroup:
    """Join the process group this process was launched with, if any."""
    import torch
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_torchelastic_launched():
        return ProcessGroup()
    if not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    if torch.cuda.is_available():
        torch.cuda.set_device(dist.get_node_local_rank())
    return ProcessGroup(dist.get_rank(), dist.get_world_size())
