#include "kernels/cpu/h3/h3_convolution.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/scratch.h"
#include "kernels/cpu/base/tensor_memory.h"
#include "kernels/cpu/h3/h3_convolution_form.h"
#include "kernels/cpu/h3/h3_convolution_rows.h"
#include "kernels/cpu/h3/h3_rows.h"

namespace hippodrome::cpu {
namespace {

// Working memory: four panels of a group, and what groups use one after another.
struct Buffers {
  static int64_t PanelFloats(const H3ConvolutionForm& form) {
    return form.layout().channel_blocks * form.tokens() * kLanes;
  }
  static int64_t GroupFloats(const H3ConvolutionForm& form) { return 4 * PanelFloats(form); }
  static int64_t SharedFloats(const H3ConvolutionForm& form) {
    return form.tokens() * kLanes +
           std::max(form.shift().work_floats(), form.diagonal().work_floats());
  }
  Buffers(const H3ConvolutionForm& form, float* group, float* shared)
      : q(group),
        k(q + PanelFloats(form)),
        v(k + PanelFloats(form)),
        o(v + PanelFloats(form)),
        u(shared),
        work(u + form.tokens() * kLanes) {}

  float* q;
  float* k;  // then ks
  float* v;
  float* o;
  float* u;  // tile of one row block, then its y
  float* work;
};

// One sequence of one group.
class GroupConvolution {
 public:
  GroupConvolution(const H3ConvolutionForm& form, int64_t group, const Buffers& buffers)
      : form_(form), layout_(form.layout()), group_(group), buffers_(buffers) {}

  void Run() const {
    const int64_t steps = form_.tokens();
    for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
      float* k = buffers_.k + c * steps * kLanes;
      form_.shift().Convolve(form_.ShiftKernel(group_, c), k, k, nullptr, buffers_.work);
    }
    if (layout_.head_dim == 1) {
      MultiplyRows({buffers_.k, kLanes}, {buffers_.v, kLanes}, steps, buffers_.u, kLanes);
      Diagonal(0);
      return MultiplyRows({buffers_.u, kLanes}, {buffers_.q, kLanes}, steps, buffers_.o, kLanes);
    }
    std::fill_n(buffers_.o, layout_.channel_blocks * steps * kLanes, 0.0f);
    for (int64_t r = 0; r < layout_.row_blocks; ++r) {
      ExpandRows(layout_, group_, r, buffers_.k, buffers_.v, steps, buffers_.u);
      Diagonal(r);
      ContractRows(layout_, group_, r, buffers_.q, buffers_.u, steps, buffers_.o);
    }
  }

 private:
  void Diagonal(int64_t row_block) const {
    form_.diagonal().Convolve(form_.DiagonalKernel(group_, row_block), buffers_.u, buffers_.u,
                              nullptr, buffers_.work);
  }

  const H3ConvolutionForm& form_;
  const H3ConvolutionLayout& layout_;
  const int64_t group_;
  const Buffers buffers_;
};

// One sequence of groups [begin, end), at most kGroupsTogether. qkv, o: its rows.
void ConvolveGroups(const H3ConvolutionForm& form, int64_t begin, int64_t end, Tensor qkv, Tensor o,
                    StoreForm store) {
  const H3Layout& layout = form.layout();
  const GroupRun groups = {begin, end, Buffers::GroupFloats(form)};
  float* memory = ThreadScratch<float>(
      ScratchUse::kH3Tile, kGroupsTogether * groups.distance + Buffers::SharedFloats(form));
  float* shared = memory + kGroupsTogether * groups.distance;
  const Buffers first(form, memory, shared);
  float* const panels[] = {first.q, first.k, first.v};
  for (int64_t i = 0; i < 3; ++i) {
    LoadPanels(layout, groups, qkv.Cols(i * layout.d_model, layout.d_model), panels[i]);
  }
  for (int64_t g = begin; g < end; ++g) {
    GroupConvolution(form, g, Buffers(form, memory + (g - begin) * groups.distance, shared)).Run();
  }
  StoreOutputPanels(layout, groups, first.o, store, o);
}

}  // namespace

void H3Convolution(ThreadPool& pool, FftPlans& plans, const H3ConvolutionKernels& weights,
                   Tensor qkv, int64_t sequences, Tensor o) {
  if (sequences == 0 || qkv.rows == 0) return;
  const H3ConvolutionLayout& layout = weights.layout();
  const int64_t tokens = qkv.rows / sequences;
  assert(qkv.rows == tokens * sequences && tokens <= layout.longest);
  assert(qkv.cols == 3 * layout.d_model && o.cols == layout.d_model && o.rows == qkv.rows);
  const H3ConvolutionForm form(pool, plans, weights, tokens);
  const StoreForm store = FormFor(o);
  const int64_t tasks = (layout.groups + kGroupsTogether - 1) / kGroupsTogether;
  pool.Run(tasks * sequences, [&](int64_t index, int) {
    const int64_t group = index / sequences * kGroupsTogether;
    const int64_t b = index % sequences;
    ConvolveGroups(form, group, std::min(layout.groups, group + kGroupsTogether),
                   qkv.Rows(b * tokens, tokens), o.Rows(b * tokens, tokens), store);
    if (store == StoreForm::kStream) FinishStreams();
  });
}

}  // namespace hippodrome::cpu
