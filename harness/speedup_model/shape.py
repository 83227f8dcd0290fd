"""A transformer's sizes from its published configuration: parameters, KV bytes, operations.

Knows arithmetic on a config; not hardware. Covers dense models, mixtures of experts (routed and shared) and latent
attention (MLA, arXiv 2405.04434: one compressed vector a token is cached, and decoding attends in the compressed
space). Norm weights are left out: below 0.01 % of the parameters.

Three precisions, because they need not be one: that of the stored weights, that of the cache, and that of the products
with the weights. Attention itself is counted at bf16, also over an FP8 cache: most kernels widen what they read.
"""

from dataclasses import dataclass
from typing import Literal

from harness.speedup_model.experts import experts_touched

Precision = Literal["bf16", "fp8", "int4"]
BYTES: dict[str, float] = {"bf16": 2.0, "fp8": 1.0, "int4": 0.5}  # of a number; scales of blocks left out


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A published ``config.json`` in these words; ``source`` says where it was read."""

    source: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int = 0  # unused with latent attention
    head_dim: int = 0  # unused with latent attention
    intermediate: int = 0  # feed-forward width of a dense layer
    vocabulary: int = 0
    tied: bool = False  # output head shares the input embedding
    experts: int = 0  # routed experts of a layer; 0: dense
    routed: int = 0  # experts a token goes to
    shared: int = 0  # experts every token goes to
    expert_intermediate: int = 0
    dense_layers: int = 0  # of a mixture: leading layers without experts
    latent: int = 0  # width of the cached compressed vector; 0: plain or grouped-query attention
    query_latent: int = 0
    nope_dim: int = 0  # head width without rotary position
    rope_dim: int = 0
    value_dim: int = 0
    projection: int = 0  # other parameters that every pass reads: a drafter's projection of the target's states
    borrowed: int = 0  # of the parameters, those that lie in another model's memory: a block drafter's output head
    weights: Precision = "bf16"  # as stored and read
    cache: Precision = "bf16"
    arithmetic: Precision = "bf16"  # of the products with the weights; int4 is multiplied at bf16

    def __post_init__(self) -> None:
        if min(self.layers, self.hidden, self.heads) < 1:
            raise ValueError("layers, hidden and heads must be positive")
        if self.routed > self.experts:
            raise ValueError(f"routed {self.routed} exceeds experts {self.experts}")

    @property
    def weight_bytes(self) -> float:
        """Bytes of a parameter."""
        return BYTES[self.weights]

    @property
    def attention(self) -> int:
        """Parameters of one attention layer."""
        if not self.latent:
            return self.hidden * self.head_dim * 2 * (self.heads + self.kv_heads)
        query_in = self.query_latent or self.hidden
        down = self.hidden * (self.query_latent + self.latent + self.rope_dim)
        up = query_in * self.heads * (self.nope_dim + self.rope_dim)
        return down + up + self.heads * (self.latent * (self.nope_dim + self.value_dim) + self.value_dim * self.hidden)

    @property
    def expert(self) -> int:
        """Parameters of one expert (gate, up and down projections)."""
        return 3 * self.hidden * self.expert_intermediate

    @property
    def expert_layers(self) -> int:
        """Layers with a mixture of experts."""
        return self.layers - self.dense_layers if self.experts else 0

    @property
    def always(self) -> int:
        """Parameters that every pass reads: all but the routed experts."""
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        dense = (self.layers - self.expert_layers) * 3 * self.hidden * self.intermediate
        mixture = self.expert_layers * (self.shared * self.expert + self.hidden * self.experts)
        return embeddings + self.layers * self.attention + dense + mixture + self.projection

    @property
    def parameters(self) -> int:
        """All parameters, embeddings included."""
        return self.always + self.expert_layers * self.experts * self.expert

    @property
    def active(self) -> int:
        """Parameters that one token uses."""
        return self.always + self.expert_layers * self.routed * self.expert

    def bytes_read(self, tokens: float) -> float:
        """Weight bytes that a pass over ``tokens`` positions reads: touched experts only."""
        touched = experts_touched(self.experts, self.routed, tokens) if self.experts else 0.0
        return self.weight_bytes * (self.always + self.expert_layers * touched * self.expert)

    @property
    def kv_bytes(self) -> float:
        """Cache bytes of one token."""
        numbers = self.latent + self.rope_dim if self.latent else 2 * self.kv_heads * self.head_dim
        return self.layers * numbers * BYTES[self.cache]

    def cache_share(self, gpus: int) -> float:
        """Share of the cache that each of ``gpus`` holds: key-value heads are split, one latent vector cannot be."""
        return 1.0 if self.latent else max(1 / gpus, 1 / self.kv_heads)

    @property
    def own_bytes(self) -> float:
        """Weight bytes in memory, borrowed ones aside."""
        return self.weight_bytes * (self.parameters - self.borrowed)

    @property
    def attention_flops(self) -> float:
        """Operations of one position against one cached token: scores and weighted sum, in all layers."""
        width = 2 * self.latent + self.rope_dim if self.latent else 2 * self.head_dim
        return self.layers * self.heads * 2.0 * width
