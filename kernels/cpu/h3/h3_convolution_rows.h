// Between matrices of activations and the panels (see h3_rows.h) of a few neighbouring groups, and
// between channels and rows of a group, as gradients take them.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_ROWS_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_ROWS_H_

#include "kernels/cpu/h3/h3_copy_rows.h"
#include "kernels/cpu/h3/h3_layout.h"
#include "kernels/tensor.h"

namespace hippodrome::cpu {

// Groups that a thread takes together, so that it uses the pairs of cache lines that memory comes
// in. Measured ns per line, columns of a matrix of 50 MB, Sapphire Rapids: 20 for one group, 10 for
// two, 9 for four.
inline constexpr int64_t kGroupsTogether = 2;

// Some groups [begin, end), the panels of each `distance` floats after those of the one before.
struct GroupRun {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t distance = 0;
};

// The panels `panel` of channels of `from`, in their order or in the layer's output order. from:
// some rows of a matrix of d columns.
void LoadPanels(const H3Layout& layout, const GroupRun& groups, Tensor from, float* panel);
void LoadOutputPanels(const H3Layout& layout, const GroupRun& groups, Tensor from, float* panel);

// The reverse.
void StorePanels(const H3Layout& layout, const GroupRun& groups, float* panel, StoreForm form,
                 Tensor to);
void StoreOutputPanels(const H3Layout& layout, const GroupRun& groups, float* panel, StoreForm form,
                       Tensor to);

// kStream where `matrix` is too large to stay in the caches and rows are aligned, else kReplace.
StoreForm FormFor(const Tensor& matrix);

// The gradient of ExpandRows() in its k, for the rows of a block:
//   dk[t, KeyChannel(row)] += du[t, row] v[t, ValueChannel(row)]
void ContractKeys(const H3Layout& layout, int64_t group, int64_t row_block, const float* v,
                  const float* du, int64_t steps, float* dk);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_CONVOLUTION_ROWS_H_
