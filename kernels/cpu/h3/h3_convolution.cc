#include "kernels/cpu/h3/h3_convolution.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "kernels/cpu/base/memory.h"

namespace hippodrome::cpu {
namespace {

// Working memory: four panels of a group, and what groups use one after another.
struct Buffers {
  static int64_t PanelFloats(const H3ConvolutionForm& form) {
    return form.layout().channel_blocks * form.tokens() * kTileChannels;
  }
  static int64_t GroupFloats(const H3ConvolutionForm& form) { return 4 * PanelFloats(form); }
  static int64_t SharedFloats(const H3ConvolutionForm& form) {
    return form.tokens() * kTileChannels +
           std::max(form.shift().work_floats(), form.diagonal().work_floats());
  }
  Buffers(const H3ConvolutionForm& form, float* group, float* shared)
      : q(group),
        k(q + PanelFloats(form)),
        v(k + PanelFloats(form)),
        o(v + PanelFloats(form)),
        u(shared),
        work(u + form.tokens() * kTileChannels) {}

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
      float* k = buffers_.k + c * steps * kTileChannels;
      form_.shift().Convolve(form_.ShiftKernel(group_, c), k, k, nullptr, buffers_.work);
    }
    if (layout_.head_dim == 1) {
      MultiplyRows({buffers_.k, kTileChannels}, {buffers_.v, kTileChannels}, steps, buffers_.u,
                   kTileChannels);
      Diagonal(0);
      return MultiplyRows({buffers_.u, kTileChannels}, {buffers_.q, kTileChannels}, steps,
                          buffers_.o, kTileChannels);
    }
    std::fill_n(buffers_.o, layout_.channel_blocks * steps * kTileChannels, 0.0f);
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

// Sequences whose sums are taken together; constant, so that sums do not depend on threads.
constexpr int64_t kChunkSequences = 8;

// Working memory that a group keeps to itself.
struct GroupBuffers {
  static int64_t PanelFloats(const H3ConvolutionForm& form) {
    return form.layout().channel_blocks * form.tokens() * kTileChannels;
  }
  static int64_t ShiftSums(const H3ConvolutionForm& form) {
    return form.layout().channel_blocks * form.shift().sums_floats();
  }
  static int64_t DiagonalSums(const H3ConvolutionForm& form) {
    return form.layout().diagonal_tiles * form.diagonal().sums_floats();
  }
  static int64_t Floats(const H3ConvolutionForm& form) {
    return 7 * PanelFloats(form) + ShiftSums(form) + DiagonalSums(form);
  }
  GroupBuffers(const H3ConvolutionForm& form, Parts parts) {
    for (float** panel : {&q, &k, &v, &d_o, &dq, &dk, &dv}) *panel = parts.Take(PanelFloats(form));
    shift_sums = parts.Take(ShiftSums(form));
    diagonal_sums = parts.Take(DiagonalSums(form));
  }

  float* q;
  float* k;  // then ks
  float* v;
  float* d_o;
  float* dq;
  float* dk;  // dks before
  float* dv;
  float* shift_sums;     // of each channel block
  float* diagonal_sums;  // of each tile of the diagonal SSM
};

// Working memory that groups use one after another.
struct SharedBuffers {
  static int64_t ShiftKept(const H3ConvolutionForm& form) {
    return form.layout().channel_blocks * form.shift().kept_floats();
  }
  static int64_t Work(const H3ConvolutionForm& form) {
    return std::max(form.shift().work_floats(), form.diagonal().work_floats());
  }
  static int64_t Floats(const H3ConvolutionForm& form) {
    return 2 * form.tokens() * kTileChannels + ShiftKept(form) + form.diagonal().kept_floats() +
           Work(form);
  }
  SharedBuffers(const H3ConvolutionForm& form, Parts parts)
      : u(parts.Take(form.tokens() * kTileChannels)),
        du(parts.Take(form.tokens() * kTileChannels)),
        shift_kept(parts.Take(ShiftKept(form))),
        diagonal_kept(parts.Take(form.diagonal().kept_floats())),
        work(parts.Take(Work(form))) {}

  float* u;  // tiles of one row block: kv, then y
  float* du;
  float* shift_kept;     // of each channel block
  float* diagonal_kept;  // of one row block
  float* work;
};

// The sequences of one chunk in one group of channels, one after another.
class GroupGradient {
 public:
  GroupGradient(const H3ConvolutionForm& form, int64_t group, Parts own, Parts shared)
      : form_(form),
        layout_(form.layout()),
        group_(group),
        steps_(form.tokens()),
        own_(form, own),
        shared_(form, shared) {
    std::fill_n(own_.shift_sums, GroupBuffers::ShiftSums(form), 0.0f);
    std::fill_n(own_.diagonal_sums, GroupBuffers::DiagonalSums(form), 0.0f);
  }

  // From the panels q, k, v and d_o of a sequence to dq, dk and dv.
  void Run() const {
    for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
      float* k = own_.k + c * steps_ * kTileChannels;
      form_.shift().Convolve(form_.ShiftKernel(group_, c), k, k, ShiftKept(c), shared_.work);
    }
    layout_.head_dim == 1 ? Channels() : Rows();
    for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
      float* dk = own_.dk + c * steps_ * kTileChannels;
      form_.shift().Correlate(form_.ShiftKernel(group_, c), ShiftKept(c), dk, dk, ShiftSums(c),
                              shared_.work);
    }
  }

  void TakeSums(int64_t chunk, H3KernelGradients& sums) const {
    for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
      form_.shift().TakeSums(ShiftSums(c), sums.ChunkTaps(group_, chunk, c), shared_.work);
    }
    for (int64_t tile = 0; tile < layout_.diagonal_tiles; ++tile) {
      form_.diagonal().TakeSums(DiagonalSums(tile), sums.ChunkKernel(group_, chunk, tile),
                                shared_.work);
    }
  }

 private:
  float* ShiftKept(int64_t channel_block) const {
    return shared_.shift_kept + channel_block * form_.shift().kept_floats();
  }
  float* ShiftSums(int64_t channel_block) const {
    return own_.shift_sums + channel_block * form_.shift().sums_floats();
  }
  float* DiagonalSums(int64_t tile) const {
    return own_.diagonal_sums + tile * form_.diagonal().sums_floats();
  }

  // u becomes y.
  void DiagonalForward(int64_t row_block) const {
    form_.diagonal().Convolve(form_.DiagonalKernel(group_, row_block), shared_.u, shared_.u,
                              shared_.diagonal_kept, shared_.work);
  }
  // du, d loss / d y, becomes d loss / d u.
  void DiagonalBackward(int64_t row_block) const {
    form_.diagonal().Correlate(form_.DiagonalKernel(group_, row_block), shared_.diagonal_kept,
                               shared_.du, shared_.du,
                               DiagonalSums(layout_.DiagonalTile(row_block)), shared_.work);
  }

  void Multiply(const float* a, const float* b, float* product) const {
    MultiplyRows({a, kTileChannels}, {b, kTileChannels}, steps_, product, kTileChannels);
  }

  // head_dim 1.
  void Channels() const {
    Multiply(own_.k, own_.v, shared_.u);
    DiagonalForward(0);
    Multiply(own_.d_o, shared_.u, own_.dq);
    Multiply(own_.d_o, own_.q, shared_.du);
    DiagonalBackward(0);
    Multiply(shared_.du, own_.v, own_.dk);
    Multiply(shared_.du, own_.k, own_.dv);
  }

  void Rows() const {
    for (float* sum : {own_.dq, own_.dk, own_.dv}) {
      std::fill_n(sum, GroupBuffers::PanelFloats(form_), 0.0f);
    }
    for (int64_t r = 0; r < layout_.row_blocks; ++r) {
      ExpandRows(layout_, group_, r, own_.k, own_.v, steps_, shared_.u);
      DiagonalForward(r);
      ContractKeys(layout_, group_, r, own_.d_o, shared_.u, steps_, own_.dq);
      ExpandRows(layout_, group_, r, own_.q, own_.d_o, steps_, shared_.du);
      DiagonalBackward(r);
      ContractKeys(layout_, group_, r, own_.v, shared_.du, steps_, own_.dk);
      ContractRows(layout_, group_, r, own_.k, shared_.du, steps_, own_.dv);
    }
  }

  const H3ConvolutionForm& form_;
  const H3ConvolutionLayout& layout_;
  const int64_t group_;
  const int64_t steps_;
  const GroupBuffers own_;
  const SharedBuffers shared_;
};

// Groups [begin, end), at most kGroupsTogether, in the sequences of one chunk.
class ChunkGradient {
 public:
  ChunkGradient(const H3ConvolutionForm& form, int64_t begin, int64_t end)
      : layout_(form.layout()),
        groups_{begin, end, GroupBuffers::Floats(form)},
        memory_(ThreadScratch<float>(
            ScratchUse::kH3Tile, kGroupsTogether * groups_.distance + SharedBuffers::Floats(form))),
        panels_(form, Parts(memory_)) {
    const Parts shared(memory_ + kGroupsTogether * groups_.distance);
    for (int64_t g = begin; g < end; ++g) {
      gradients_.emplace_back(form, g, Parts(memory_ + (g - begin) * groups_.distance), shared);
    }
  }

  // One sequence. qkv, d_o, dqkv: its rows.
  void Add(const Tensor& qkv, const Tensor& d_o, const Tensor& dqkv, StoreForm store) const {
    const int64_t d = layout_.d_model;
    float* const inputs[] = {panels_.q, panels_.k, panels_.v};
    float* const outputs[] = {panels_.dq, panels_.dk, panels_.dv};
    for (int64_t i = 0; i < 3; ++i) LoadPanels(layout_, groups_, qkv.Cols(i * d, d), inputs[i]);
    LoadOutputPanels(layout_, groups_, d_o, panels_.d_o);
    for (const GroupGradient& gradient : gradients_) gradient.Run();
    if (dqkv.data == nullptr) return;
    for (int64_t i = 0; i < 3; ++i) {
      StorePanels(layout_, groups_, outputs[i], store, dqkv.Cols(i * d, d));
    }
  }

  void TakeSums(int64_t chunk, H3KernelGradients& sums) const {
    for (const GroupGradient& gradient : gradients_) gradient.TakeSums(chunk, sums);
  }

 private:
  const H3Layout& layout_;
  const GroupRun groups_;
  float* const memory_;
  const GroupBuffers panels_;  // of the first group
  std::vector<GroupGradient> gradients_;
};

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

void H3ConvolutionBackward(ThreadPool& pool, FftPlans& plans, const H3ConvolutionKernels& weights,
                           Tensor qkv, int64_t sequences, Tensor d_o, Gradient dqkv,
                           H3KernelGradients& sums) {
  if (sequences == 0 || qkv.rows == 0) return;
  const H3ConvolutionLayout& layout = weights.layout();
  const int64_t tokens = qkv.rows / sequences;
  assert(qkv.rows == tokens * sequences && tokens <= layout.longest);
  assert(qkv.cols == 3 * layout.d_model && d_o.cols == layout.d_model && d_o.rows == qkv.rows);
  const H3ConvolutionForm form(pool, plans, weights, tokens);
  const int64_t chunks = (sequences + kChunkSequences - 1) / kChunkSequences;
  const int64_t pairs = (layout.groups + kGroupsTogether - 1) / kGroupsTogether;
  const bool wanted = dqkv.tensor.data != nullptr;
  const StoreForm store = dqkv.add ? StoreForm::kAdd : FormFor(dqkv.tensor);
  sums.Begin(chunks, tokens);
  pool.Run(pairs * chunks, [&](int64_t index, int) {
    const int64_t chunk = index % chunks;
    const int64_t group = index / chunks * kGroupsTogether;
    const ChunkGradient gradient(form, group, std::min(layout.groups, group + kGroupsTogether));
    const int64_t end = std::min(sequences, (chunk + 1) * kChunkSequences);
    for (int64_t b = chunk * kChunkSequences; b < end; ++b) {
      const Tensor out = wanted ? dqkv.tensor.Rows(b * tokens, tokens) : Tensor();
      gradient.Add(qkv.Rows(b * tokens, tokens), d_o.Rows(b * tokens, tokens), out, store);
    }
    gradient.TakeSums(chunk, sums);
    if (store == StoreForm::kStream) FinishStreams();
  });
  pool.Run(layout.groups, [&](int64_t group, int) { sums.AddChunks(group); });
}

}  // namespace hippodrome::cpu
