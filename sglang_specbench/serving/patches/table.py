"""Every patch of ours, and which launch gets which.

`GATES` are applied in each process of a CPU server, `CPU` in its scheduler, `OF_ARM` where the arm's row names them.
"""

from sglang_specbench.arms import ARMS
from sglang_specbench.launch import ServerConfig
from sglang_specbench.serving.patches import attention, gates, tensors, verification
from sglang_specbench.serving.patches.dflash2_argmax import with_argmax_selector
from sglang_specbench.serving.patches.lilicorr_exact import exact_path
from sglang_specbench.serving.patching import Patch, always

_ARGS = "sglang.srt.arg_groups"
_WORKER = "sglang.srt.speculative.dflash_worker_v2"
_UTILS = "sglang.srt.speculative.dflash_utils"
_CPU_DRAFTERS = "SGLang serves DFLASH and DSPARK on CPUs"
_SAMPLING = (
    "(predicts, accept_index, accept_token_num, candidates, retrive_index, retrive_next_token,"
    " retrive_next_sibling, uniform_samples, uniform_samples_for_final_sampling, target_probs, draft_probs,"
)

GATES = (
    Patch(
        name="cpu_dflash_gate",
        target=f"{_ARGS}.speculative_hook:_handle_dflash",
        signature="(server_args)",
        replace=gates.without_device_gate,
        reason="raises on --device cpu",
        delete_when=_CPU_DRAFTERS,
    ),
    Patch(
        name="cpu_dspark_gate",
        target=f"{_ARGS}.speculative_hook:_handle_dspark",
        signature="(server_args)",
        replace=gates.without_device_gate,
        reason="raises on --device cpu",
        delete_when=_CPU_DRAFTERS,
    ),
    Patch(
        name="cpu_draft_attention_choice",
        target=f"{_ARGS}.choices:DRAFT_ATTENTION_BACKEND_CHOICES",
        signature="['flashinfer', 'fa3', 'fa4', 'triton', 'ascend', 'trtllm_mha', 'intel_xpu']",
        replace=gates.with_torch_native,
        reason="torch_native, the only backend of a CPU, is not among the draft attention backends",
        delete_when=_CPU_DRAFTERS,
    ),
)

CPU = (
    Patch(
        name="cpu_verify_attention",
        target="sglang.srt.layers.attention.torch_native_backend:TorchNativeAttnBackend.forward_extend",
        signature="(self, q, k, v, layer, forward_batch, save_kv_cache=True)",
        replace=attention.with_verify,
        reason="torch_native does not know TARGET_VERIFY",
        delete_when="torch_native serves TARGET_VERIFY",
    ),
    Patch(
        name="cpu_record_stream",
        target="torch:Tensor.record_stream",
        signature="builtin",
        replace=tensors.without_streams,
        reason="raises for CPU tensors; both workers call it every step",
        delete_when="the workers guard it by device",
    ),
    Patch(
        name="cpu_embeds_dtype",
        target="sglang.srt.model_executor.model_runner:ModelRunner._extend_forward_kwargs",
        signature="(self, forward_batch, pp_proxy_tensors)",
        replace=tensors.keeping_dtype,
        reason="casts the draft's input embeddings to bfloat16 whatever the model's dtype is",
        delete_when="the cast uses the model's dtype",
    ),
    Patch(
        name="cpu_topk",
        target="sglang.srt.models.dflash:_radix_topk",
        signature="(scores, k)",
        replace=always(tensors.torch_topk),
        reason="calls flashinfer's top-k, which can be imported but runs on CUDA only",
        delete_when="_radix_topk looks at the tensor's device",
    ),
    Patch(
        name="cpu_qk_norm_rope",
        target="sglang.kernels.ops.attention.table_qk_norm_rope:table_qk_norm_rope_",
        signature="(qkv, positions, q_weight, k_weight, cos_sin_cache, num_q_heads, num_k_heads, head_dim, eps)",
        replace=always(tensors.qk_norm_rope_),
        reason="Triton kernel that bfloat16 drafts call",
        delete_when="the draft models take the unfused path on a CPU",
    ),
    Patch(
        name="cpu_dspark_kv_write",
        target="sglang.srt.models.dspark:DSparkDraftMixin._fused_kv_write_bundle",
        signature="(self, pool)",
        replace=always(tensors.no_fused_write),
        reason="readies a Triton kernel that bfloat16 drafts call; without it they write layer by layer",
        delete_when="the draft models take the unfused path on a CPU",
    ),
    Patch(
        name="cpu_domino_gate",
        target=f"{_WORKER}:validate_domino_runtime",
        signature="(*, device, tp_size, tp_rank, target_vocab_size, draft_vocab_size, hidden_size,"
        " target_embedding, lm_head, prefix_gru, embed_proj)",
        replace=always(tensors.domino_gate),
        reason="demands CUDA and bfloat16; its eager rollout needs neither",
        delete_when="Domino's eager rollout is allowed on a CPU",
    ),
    Patch(
        name="cpu_point_mass_verification",
        target=f"{_UTILS}:tree_speculative_sampling_target_only",
        signature="None",
        replace=always(verification.point_mass_rule),
        reason="no kernel for a CPU: argmax proposals at temperature > 0 would be verified greedily",
        delete_when="SGLang has a CPU version of tree_speculative_sampling_target_only",
    ),
    Patch(
        name="cpu_point_mass_available",
        target=f"{_UTILS}:_DFLASH_SAMPLING_VERIFY_AVAILABLE",
        signature="False",
        replace=always(True),
        reason="the flag that goes with cpu_point_mass_verification, computed at import",
        delete_when="cpu_point_mass_verification goes",
    ),
    Patch(
        name="cpu_chain_verification",
        target="sglang.kernels.ops.speculative.dspark.dspark_accept:chain_speculative_sampling_triton",
        signature=_SAMPLING + " threshold_single, threshold_acc, deterministic, *, block_verification=False)",
        replace=always(verification.chain_rule),
        reason="Triton kernel: sampled proposals at temperature > 0 would crash",
        delete_when="SGLang has a torch version of chain_speculative_sampling_triton",
    ),
)

OF_ARM = {
    "dflash2_argmax": Patch(
        name="dflash2_argmax",
        target=f"{_WORKER}:DFlashWorkerV2.__init__",
        signature="(self, server_args, gpu_id, nccl_port, target_worker)",
        replace=with_argmax_selector,
        reason="no flag gives DFlash2 the argmax proposal at temperature > 0",
        delete_when="SGLang has a switch like SGLANG_ENABLE_LILICORR_SAMPLING for DFlash2",
    ),
    "lilicorr_exact": Patch(
        name="lilicorr_exact",
        target="sglang.srt.models.lilicorr:lilicorr_sample_path",
        signature="(log_start, log_pair, candidate_tokens, uniforms, temperatures, greedy_mask)",
        replace=always(exact_path),
        reason="the ablation of the decode rule: exact path against the greedy walk",
        delete_when="SGLang can decode LiLiCorr's lattice exactly",
    ),
}


def gate_patches(config: ServerConfig) -> tuple[Patch, ...]:
    """For every process of the server."""
    return GATES if config.device == "cpu" else ()


def arm_patches(config: ServerConfig) -> tuple[Patch, ...]:
    """For the scheduler, before its draft worker is built."""
    return (CPU if config.device == "cpu" else ()) + tuple(OF_ARM[name] for name in ARMS[config.arm].patches)
