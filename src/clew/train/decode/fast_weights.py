"""Fused weight matrices of a Llama-family model, with its LoRA adapter kept separate.

Base and adapter are never summed: in bfloat16 the small training steps would be rounded away.
A model trained without LoRA stays float32 for the same reason; a GPU gets a bfloat16 copy here.
"""

from dataclasses import dataclass
from typing import Any

from clew.errors import ConfigError

_FAMILY = ("llama", "qwen2", "mistral")


@dataclass
class Linear:
    """y = x·Wᵀ + b, plus (x·Aᵀ)·Bᵀ for LoRA; several modules with one input fused."""

    weight: Any
    bias: Any = None
    down: Any = None
    up: Any = None

    def __call__(self, x: Any) -> Any:
        """Apply the layer."""
        from torch.nn.functional import linear

        y = linear(x, self.weight, self.bias)
        if self.down is not None:
            y = y + linear(linear(x, self.down), self.up)
        return y


@dataclass
class Layer:
    """Weights of one transformer layer."""

    norm: Any
    qkv: Linear
    out: Linear
    norm2: Any
    gate_up: Linear
    down: Linear


@dataclass
class Shape:
    """Model dimensions that a decoder needs."""

    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    theta: float
    layers: int


class Weights:
    """All weights of a decoder; `refresh` copies what training changed."""

    def __init__(self, model: Any, dtype: Any = None) -> None:
        """Fuse the matrices of a transformers model, or of a peft model around one.

        `dtype` defaults to the model's, and to bfloat16 on a GPU.
        """
        config = model.config
        if config.model_type not in _FAMILY:
            raise ConfigError(
                f"the fast decoder knows {', '.join(_FAMILY)}, not {config.model_type}; "
                'set decoder = "plain"'
            )
        self.model = model
        self.shape = _shape(config)
        core = self._core()
        inner = core.model
        self.dtype = dtype or _short(inner.embed_tokens.weight)
        self._copies: list[tuple[Any, Any]] = []
        self.embed = self._kept(inner.embed_tokens.weight)
        self.norm = self._kept(inner.norm.weight)
        head = core.get_output_embeddings().weight
        self.head = self.embed if head is inner.embed_tokens.weight else self._kept(head)
        self.layers = [self._layer(block) for block in inner.layers]

    def _core(self) -> Any:
        wrapped = hasattr(self.model, "get_base_model")
        return self.model.get_base_model() if wrapped else self.model

    def _kept(self, weight: Any) -> Any:
        """Return the weight if it has the right dtype, else a copy renewed by `refresh`."""
        if weight.dtype == self.dtype:
            return weight
        copy = weight.detach().to(self.dtype)
        self._copies.append((copy, weight))
        return copy

    def _layer(self, block: Any) -> Layer:
        mixer, mlp = block.self_attn, block.mlp
        return Layer(
            norm=self._kept(block.input_layernorm.weight),
            qkv=_fuse([mixer.q_proj, mixer.k_proj, mixer.v_proj], self.dtype),
            out=_fuse([mixer.o_proj], self.dtype),
            norm2=self._kept(block.post_attention_layernorm.weight),
            gate_up=_fuse([mlp.gate_proj, mlp.up_proj], self.dtype),
            down=_fuse([mlp.down_proj], self.dtype),
        )

    def refresh(self) -> None:
        """Copy trained weights into the matrices in place, so that captured graphs stay valid."""
        import torch

        inner = self._core().model
        trained = any(p.requires_grad for n, p in inner.named_parameters() if "lora_" not in n)
        with torch.no_grad():
            for copy, weight in self._copies:
                copy.copy_(weight)
        for layer, block in zip(self.layers, inner.layers, strict=True):
            for fused, parts in _fused(layer, block):
                _refill(fused, parts, base=trained)


def _shape(config: Any) -> Shape:
    rope = getattr(config, "rope_parameters", None) or {}
    # Qwen2 uses its sliding window only with `use_sliding_window`; Mistral always does.
    sliding = getattr(config, "sliding_window", None) and getattr(
        config, "use_sliding_window", True
    )
    if rope.get("rope_type", "default") != "default" or sliding:
        raise ConfigError(
            "the fast decoder knows neither scaled rotary positions nor sliding windows; "
            'set decoder = "plain"'
        )
    theta: Any = rope.get("rope_theta") or getattr(config, "rope_theta", 10000.0)
    head_dim = getattr(config, "head_dim", None) or (
        config.hidden_size // config.num_attention_heads
    )
    return Shape(
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_dim=head_dim,
        eps=config.rms_norm_eps,
        theta=float(theta),
        layers=config.num_hidden_layers,
    )


def _short(weight: Any) -> Any:
    import torch

    return torch.bfloat16 if weight.device.type == "cuda" else weight.dtype


def _fused(layer: Layer, block: Any) -> list[tuple[Linear, list[Any]]]:
    mixer, mlp = block.self_attn, block.mlp
    return [
        (layer.qkv, [mixer.q_proj, mixer.k_proj, mixer.v_proj]),
        (layer.out, [mixer.o_proj]),
        (layer.gate_up, [mlp.gate_proj, mlp.up_proj]),
        (layer.down, [mlp.down_proj]),
    ]


def _base(module: Any) -> Any:
    return module.base_layer if hasattr(module, "base_layer") else module


def _adapter(module: Any) -> tuple[Any, Any, float] | None:
    if not getattr(module, "lora_A", None):
        return None
    name = next(iter(module.lora_A))
    return module.lora_A[name].weight, module.lora_B[name].weight, float(module.scaling[name])


def _fuse(modules: list[Any], dtype: Any) -> Linear:
    import torch

    bases = [_base(module) for module in modules]
    single = len(modules) == 1
    with torch.no_grad():
        weight = bases[0].weight if single else torch.cat([base.weight for base in bases])
        bias = None
        if bases[0].bias is not None:
            bias = torch.cat([base.bias for base in bases]).to(dtype)
        fused = Linear(weight.detach().to(dtype), None if bias is None else bias.detach())
        adapters = [_adapter(module) for module in modules]
        if any(one is not None for one in adapters):
            rank = sum(one[0].shape[0] for one in adapters if one is not None)
            device = weight.device
            fused.down = torch.zeros(rank, weight.shape[1], dtype=dtype, device=device)
            fused.up = torch.zeros(weight.shape[0], rank, dtype=dtype, device=device)
            _refill(fused, modules, base=False)
    return fused


def _refill(fused: Linear, modules: list[Any], *, base: bool) -> None:
    """Copy the modules' current values; adapters form a block diagonal in `lora_b`."""
    import torch

    row = low = 0
    with torch.no_grad():
        for module in modules:
            layer = _base(module)
            height = layer.weight.shape[0]
            if base:
                fused.weight[row : row + height].copy_(layer.weight)
                if fused.bias is not None:
                    fused.bias[row : row + height].copy_(layer.bias)
            adapter = _adapter(module)
            if adapter is not None:
                down, up, scale = adapter
                rank = down.shape[0]
                fused.down[low : low + rank].copy_(down)
                fused.up[row : row + height, low : low + rank].copy_(up * scale)
                low += rank
            row += height
