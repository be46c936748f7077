#include "tools/device_model/kernel_units.h"

#include <algorithm>
#include <cassert>

namespace hippodrome {
namespace {

// Kernel, unit; L2 sectors, L1 sectors, wavefronts, mma; instructions of each warp of a block, and
// for a unit; warps of a block, blocks of a multiprocessor.
constexpr KernelUnits kUnits[] = {
    {"embedding", "value", 0.18799, 0.19141, 0, 0, 130, 0.29, 8, 8},
    {"gather_rows", "value", 0.18799, 0.19141, 0, 0, 53, 0.15, 8, 8},
    {"layer_norm", "value", 0.21875, 0.4375, 0.0078125, 0, 69, 0.752, 4, 8},
    {"linear_step", "weight", 0.066437, 0.066437, 0.0014648, 0.0078125, 524, 0.084, 8, 3},
    // The warps of a row have 420 instructions more, for which the others wait.
    {"layer_norm_linear_step", "weight", 0.085968, 0.085968, 0.0053711, 0.0078125, 944, 0.084, 8,
     3},
    {"round_inputs", "value", 0.10156, 0.10156, 0, 0, 0, 3.1, 8, 8},
    // Instructions are those of blocks of two tiles of columns.
    {"linear_quantized int8, 8 rows", "weight", 0.035675, 0.04007, 0.0021973, 0.0039062, 350, 0.157,
     8, 2},
    {"linear_quantized int8", "weight", 0.050568, 0.051056, 0.0031738, 0.0039062, 320, 0.096, 8, 2},
    {"linear_quantized int4", "weight", 0.021515, 0.023468, 0.0021973, 0.0039062, 326, 0.161, 8, 2},
    {"linear_quantized int8, 32 rows", "weight, of 32 rows", 0.097168, 0.097656, 0.0078125,
     0.0078125, 400, 0.125, 8, 2},
    {"linear_quantized int4, 32 rows", "weight, of 32 rows", 0.088867, 0.09082, 0.0078125,
     0.0078125, 400, 0.264, 8, 2},
    {"linear_quantized_rows int8", "weight, of 128 rows", 0.1001, 0.1001, 0.11584, 0.03125, 1300,
     0.47, 8, 2},
    {"linear_quantized_rows int4", "weight, of 64 rows", 0.054688, 0.054688, 0.069824, 0.015625,
     820, 0.54, 8, 2},
    {"h3_settle", "channel of a part", 0.0625, 0.78125, 0, 0, 0, 14.66, 8, 6},
    {"h3_scan", "channel of a token", 0.28717, 0.31946, 0.56946, 0.14844, 2900, 3.5, 16, 1},
    {"h3_step", "channel of a sequence", 45.938, 48.5, 4, 0, 171, 90.5, 8, 4},
    // Of what an H100 counted before the kernel's last change, 48.4, the part that the compiled
    // code has kept: three quarters.
    {"h3_step ahead", "channel of a sequence", 4.5703, 4.6406, 3.1914, 0, 0, 36.3, 8, 4},
    {"linear_finish", "value", 0.25, 0.25, 0, 0, 0, 1.2, 8, 8},
    {"long_conv_toeplitz", "tile of 128 by 64, of 64 channels", 374.6, 401.6, 456.8, 435.2, 1365,
     2376, 4, 3},
    {"long_conv_fft 512", "channel", 75.062, 249, 320, 0, 0, 1632, 16, 2},
    {"long_conv_fft 1024", "channel", 149.62, 492, 640, 0, 0, 3440, 32, 1},
    {"long_conv_fft 2048", "channel", 597.5, 1240, 1280, 0, 0, 7232, 32, 1},
    {"long_conv_fft 4096", "channel", 2388, 3528, 2560, 0, 0, 15104, 32, 1},
    {"long_conv_fft 8192", "channel", 9612.5, 11424, 7168, 0, 0, 34304, 32, 1},
    {"attention_store", "dimension of a token", 0.25098, 0.25977, 0, 0, 0, 0.707, 4, 10},
    {"attention_sequence", "dimension of a tile", 13.339, 13.406, 11, 6.6667, 0, 33.89, 4, 2},
    {"attention_step", "dimension of a key", 0.12607, 0.13422, 0.0064697, 0, 0, 0.3584, 4, 7},
    {"attention_combine", "dimension of a part", 0.14453, 0.21094, 0, 0, 0, 1.587, 4, 16},
    {"sample greedy", "logit", 0.12502, 0.12502, 0.0057297, 0, 0, 0.5529, 32, 1},
    {"sample", "logit", 0.12502, 0.12502, 1.6015, 0, 0, 9.422, 32, 1},
    {"gated_conv 256", "row", 66.562, 69.125, 26, 0, 0, 246, 2, 16},
    {"gated_conv 1024", "row", 298.5, 341, 168.5, 0, 0, 1180, 2, 16},
    {"gated_conv 4096", "row", 1350.5, 1358, 659.5, 0, 0, 5136, 4, 8},
    {"gated_conv 8192", "row", 2696.5, 2728, 1304, 0, 0, 10560, 8, 4},
    {"gated_conv 16384", "row", 5453, 5592, 3624.5, 0, 0, 23552, 16, 2},
    {"gated_conv 32768", "row", 10838, 11136, 7273.5, 0, 0, 48640, 32, 1},
};

}  // namespace

std::span<const KernelUnits> AllKernelUnits() { return kUnits; }

const KernelUnits& UnitsOf(std::string_view kernel) {
  const auto* const found = std::ranges::find(kUnits, kernel, &KernelUnits::kernel);
  assert(found != std::end(kUnits));
  return *found;
}

LaunchCounts CountsOf(const KernelUnits& kernel, double units, double blocks, double dram_bytes) {
  return {.dram_bytes = dram_bytes,
          .l2_sectors = units * kernel.l2_sectors,
          .l1_sectors = units * kernel.l1_sectors,
          .wavefronts = units * kernel.wavefronts,
          .instructions =
              blocks * kernel.warps * kernel.block_instructions + units * kernel.instructions,
          .mma = units * kernel.mma,
          .blocks = blocks,
          .warps = kernel.warps,
          .resident = kernel.resident};
}

}  // namespace hippodrome
