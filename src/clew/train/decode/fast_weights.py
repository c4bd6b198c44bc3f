"""Fused weight matrices of a Llama-family model, with its LoRA adapter kept separate.

Base and adapter are never summed: in bfloat16 the small training steps would be rounded away.
A model trained without LoRA stays float32 for the same reason; a GPU gets a bfloat16 copy here.
"""

from dataclasses import dataclass
from typing import Any

from clew.errors import ConfigError

_SUPPORTED_FAMILIES = ("llama", "qwen2", "mistral")


@dataclass
class FusedLinear:
    """y = x·Wᵀ + b, plus (x·Aᵀ)·Bᵀ for LoRA; several modules with one input fused."""

    weight: Any
    bias: Any = None
    lora_a: Any = None
    lora_b: Any = None

    def __call__(self, x: Any) -> Any:
        """Apply the layer."""
        from torch.nn.functional import linear

        y = linear(x, self.weight, self.bias)
        if self.lora_a is not None:
            y = y + linear(linear(x, self.lora_a), self.lora_b)
        return y


@dataclass
class FusedLayer:
    """Weights of one transformer layer."""

    attention_norm: Any
    qkv: FusedLinear
    out: FusedLinear
    mlp_norm: Any
    gate_up: FusedLinear
    down: FusedLinear


@dataclass
class ModelShape:
    """Model dimensions that a decoder needs."""

    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    theta: float
    layers: int


class FusedWeights:
    """All weights of a decoder; `refresh` copies what training changed."""

    def __init__(self, model: Any, dtype: Any = None) -> None:
        """Fuse the matrices of a transformers model, or of a peft model around one.

        `dtype` defaults to the model's, and to bfloat16 on a GPU.
        """
        config = model.config
        if config.model_type not in _SUPPORTED_FAMILIES:
            raise ConfigError(
                f"the fast decoder supports {', '.join(_SUPPORTED_FAMILIES)}, "
                f'not {config.model_type}; set decoder = "plain"'
            )
        self.model = model
        self.shape = read_shape(config)
        core = self._base_model()
        inner = core.model
        self.dtype = dtype or _default_dtype(inner.embed_tokens.weight)
        self._copies: list[tuple[Any, Any]] = []
        self.embed = self._cast_weight(inner.embed_tokens.weight)
        self.norm = self._cast_weight(inner.norm.weight)
        head = core.get_output_embeddings().weight
        self.head = self.embed if head is inner.embed_tokens.weight else self._cast_weight(head)
        self.layers = [self._fuse_layer(block) for block in inner.layers]

    def _base_model(self) -> Any:
        wrapped = hasattr(self.model, "get_base_model")
        return self.model.get_base_model() if wrapped else self.model

    def _cast_weight(self, weight: Any) -> Any:
        """Return the weight if it has the right dtype, else a copy renewed by `refresh`."""
        if weight.dtype == self.dtype:
            return weight
        copy = weight.detach().to(self.dtype)
        self._copies.append((copy, weight))
        return copy

    def _fuse_layer(self, block: Any) -> FusedLayer:
        mixer, mlp = block.self_attn, block.mlp
        return FusedLayer(
            attention_norm=self._cast_weight(block.input_layernorm.weight),
            qkv=_fuse_modules([mixer.q_proj, mixer.k_proj, mixer.v_proj], self.dtype),
            out=_fuse_modules([mixer.o_proj], self.dtype),
            mlp_norm=self._cast_weight(block.post_attention_layernorm.weight),
            gate_up=_fuse_modules([mlp.gate_proj, mlp.up_proj], self.dtype),
            down=_fuse_modules([mlp.down_proj], self.dtype),
        )

    def refresh(self) -> None:
        """Copy trained weights into the matrices in place, so that captured graphs stay valid."""
        import torch

        inner = self._base_model().model
        trained = any(p.requires_grad for n, p in inner.named_parameters() if "lora_" not in n)
        with torch.no_grad():
            for copy, weight in self._copies:
                copy.copy_(weight)
        for layer, block in zip(self.layers, inner.layers, strict=True):
            for fused, parts in _match_modules(layer, block):
                _copy_weights(fused, parts, base=trained)


def read_shape(config: Any) -> ModelShape:
    """Sizes that the fast decoder needs; raises if it cannot run this model."""
    rope = getattr(config, "rope_parameters", None) or {}
    # Qwen2 uses its sliding window only with `use_sliding_window`; Mistral always does.
    sliding = getattr(config, "sliding_window", None) and getattr(
        config, "use_sliding_window", True
    )
    if rope.get("rope_type", "default") != "default" or sliding:
        raise ConfigError(
            "the fast decoder supports neither scaled rotary positions nor sliding windows; "
            'set decoder = "plain"'
        )
    theta: Any = rope.get("rope_theta") or getattr(config, "rope_theta", 10000.0)
    head_dim = getattr(config, "head_dim", None) or (
        config.hidden_size // config.num_attention_heads
    )
    return ModelShape(
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_dim=head_dim,
        eps=config.rms_norm_eps,
        theta=float(theta),
        layers=config.num_hidden_layers,
    )


def _default_dtype(weight: Any) -> Any:
    import torch

    return torch.bfloat16 if weight.device.type == "cuda" else weight.dtype


def _match_modules(layer: FusedLayer, block: Any) -> list[tuple[FusedLinear, list[Any]]]:
    mixer, mlp = block.self_attn, block.mlp
    return [
        (layer.qkv, [mixer.q_proj, mixer.k_proj, mixer.v_proj]),
        (layer.out, [mixer.o_proj]),
        (layer.gate_up, [mlp.gate_proj, mlp.up_proj]),
        (layer.down, [mlp.down_proj]),
    ]


def _base_layer(module: Any) -> Any:
    return module.base_layer if hasattr(module, "base_layer") else module


def _lora_weights(module: Any) -> tuple[Any, Any, float] | None:
    if not getattr(module, "lora_A", None):
        return None
    name = next(iter(module.lora_A))
    return module.lora_A[name].weight, module.lora_B[name].weight, float(module.scaling[name])


def _fuse_modules(modules: list[Any], dtype: Any) -> FusedLinear:
    import torch

    bases = [_base_layer(module) for module in modules]
    single = len(modules) == 1
    with torch.no_grad():
        weight = bases[0].weight if single else torch.cat([base.weight for base in bases])
        bias = None
        if bases[0].bias is not None:
            bias = torch.cat([base.bias for base in bases]).to(dtype)
        fused = FusedLinear(weight.detach().to(dtype), None if bias is None else bias.detach())
        adapters = [_lora_weights(module) for module in modules]
        if any(one is not None for one in adapters):
            rank = sum(one[0].shape[0] for one in adapters if one is not None)
            device = weight.device
            fused.lora_a = torch.zeros(rank, weight.shape[1], dtype=dtype, device=device)
            fused.lora_b = torch.zeros(weight.shape[0], rank, dtype=dtype, device=device)
            _copy_weights(fused, modules, base=False)
    return fused


def _copy_weights(fused: FusedLinear, modules: list[Any], *, base: bool) -> None:
    """Copy the modules' current values; adapters form a block diagonal in `lora_b`."""
    import torch

    row = low = 0
    with torch.no_grad():
        for module in modules:
            layer = _base_layer(module)
            height = layer.weight.shape[0]
            if base:
                fused.weight[row : row + height].copy_(layer.weight)
                if fused.bias is not None:
                    fused.bias[row : row + height].copy_(layer.bias)
            adapter = _lora_weights(module)
            if adapter is not None:
                down, up, scale = adapter
                rank = down.shape[0]
                fused.lora_a[low : low + rank].copy_(down)
                fused.lora_b[row : row + height, low : low + rank].copy_(up * scale)
                low += rank
            row += height
