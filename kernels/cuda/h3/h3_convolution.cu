// What an H3 layer does between its two convolutions, and the gradients of that, row by row: one
// block for each token. Columns of y, kv and their gradients are triples (head, d1, d2).
#include "kernels/cuda/h3/h3_convolution.h"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/base/device_code.cuh"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/convolution_view.cuh"
#include "kernels/ssm/h3_ssm.h"

namespace hippodrome::cuda {
namespace {

constexpr int kH3RowThreads = 128;

struct H3Sizes {
  int32_t d_model;
  int32_t head_dim;
  bool head_major;  // channel (head, d2) of the output is head * head_dim + d2

  __device__ int heads() const { return d_model / head_dim; }
  __device__ int triples() const { return d_model * head_dim; }
  __device__ int Output(int channel) const {
    return head_major ? channel : channel % head_dim * heads() + channel / head_dim;
  }
  // The channels (head, d1) and (head, d2) of a triple.
  __device__ int First(int triple) const { return triple / head_dim; }
  __device__ int Second(int triple) const {
    return triple / (head_dim * head_dim) * head_dim + triple % head_dim;
  }
};

// q | k | v of the token of this block.
template <typename T>
struct H3Rows {
  const T* qkv;
  int64_t stride;

  __device__ const T* Row(const H3Sizes& sizes, int part) const {
    return qkv + blockIdx.x * stride + int64_t{part} * sizes.d_model;
  }
};

// Matrices in scratch memory, adjacent rows of d or of d * head_dim numbers.
struct H3Scratch {
  float* ks;   // [B T, d]
  float* dks;  // [B T, d]
  float* kv;   // [B T, d head_dim], as those below
  float* r;
  float* y;
  float* dkv;

  __device__ static float* Row(float* matrix, int columns) {
    return matrix + int64_t{blockIdx.x} * columns;
  }
};

// kv = ks v^T, and r = q do^T where there is do.
template <typename T>
__global__ void __launch_bounds__(kH3RowThreads)
    H3ExpandKernel(H3Sizes sizes, H3Rows<T> rows, const float* d_o, int64_t d_o_stride,
                   H3Scratch scratch) {
  const T* q = rows.Row(sizes, 0);
  const T* v = rows.Row(sizes, 2);
  const float* ks = H3Scratch::Row(scratch.ks, sizes.d_model);
  float* kv = H3Scratch::Row(scratch.kv, sizes.triples());
  float* r = H3Scratch::Row(scratch.r, sizes.triples());
  for (int i = static_cast<int>(threadIdx.x); i < sizes.triples(); i += kH3RowThreads) {
    const int first = sizes.First(i);
    const int second = sizes.Second(i);
    kv[i] = ks[first] * Widen(v[second]);
    if (d_o != nullptr) {
      r[i] = Widen(q[first]) * d_o[blockIdx.x * d_o_stride + sizes.Output(second)];
    }
  }
}

// o = q^T y
template <typename T>
__global__ void __launch_bounds__(kH3RowThreads)
    H3ContractKernel(H3Sizes sizes, H3Rows<T> rows, H3Scratch scratch, T* o, int64_t o_stride) {
  const T* q = rows.Row(sizes, 0);
  const float* y = H3Scratch::Row(scratch.y, sizes.triples());
  const int n = sizes.head_dim;
  for (int c = static_cast<int>(threadIdx.x); c < sizes.d_model; c += kH3RowThreads) {
    const int head = c / n;
    float sum = 0;
    for (int d1 = 0; d1 < n; ++d1) {
      sum = fmaf(Widen(q[head * n + d1]), y[(head * n + d1) * n + c % n], sum);
    }
    o[blockIdx.x * o_stride + sizes.Output(c)] = FromFloat<T>(sum);
  }
}

// dks = dkv v, which stays in scratch memory.
template <typename T>
__global__ void __launch_bounds__(kH3RowThreads)
    H3ShiftGradientKernel(H3Sizes sizes, H3Rows<T> rows, H3Scratch scratch) {
  const T* v = rows.Row(sizes, 2);
  const float* dkv = H3Scratch::Row(scratch.dkv, sizes.triples());
  float* dks = H3Scratch::Row(scratch.dks, sizes.d_model);
  const int n = sizes.head_dim;
  for (int c = static_cast<int>(threadIdx.x); c < sizes.d_model; c += kH3RowThreads) {
    float sum = 0;
    for (int d2 = 0; d2 < n; ++d2) sum = fmaf(dkv[c * n + d2], Widen(v[c / n * n + d2]), sum);
    dks[c] = sum;
  }
}

// dq = y do and dv = dkv^T ks, into a matrix [B T, 3 d].
__global__ void __launch_bounds__(kH3RowThreads)
    H3RowGradientKernel(H3Sizes sizes, H3Scratch scratch, const float* d_o, int64_t d_o_stride,
                        float* dqkv, int64_t dqkv_stride, bool add) {
  const float* ks = H3Scratch::Row(scratch.ks, sizes.d_model);
  const float* y = H3Scratch::Row(scratch.y, sizes.triples());
  const float* dkv = H3Scratch::Row(scratch.dkv, sizes.triples());
  d_o += blockIdx.x * d_o_stride;
  float* dq = dqkv + blockIdx.x * dqkv_stride;
  float* dv = dq + 2 * int64_t{sizes.d_model};
  const int n = sizes.head_dim;
  for (int c = static_cast<int>(threadIdx.x); c < sizes.d_model; c += kH3RowThreads) {
    const int first = c / n * n;  // channel of the head
    float q = 0;
    float v = 0;
    for (int i = 0; i < n; ++i) {
      q = fmaf(y[c * n + i], d_o[sizes.Output(first + i)], q);
      v = fmaf(dkv[(first + i) * n + c % n], ks[first + i], v);
    }
    dq[c] = add ? dq[c] + q : q;
    dv[c] = add ? dv[c] + v : v;
  }
}

// Of each matrix of products that a call keeps: larger calls go through their sequences in parts.
constexpr int64_t kScratchFloats = int64_t{1} << 27;

// What goes from one launch to the next.
struct Scratch {
  Tensor ks, dks;        // [rows, d]
  Tensor kv, r, y, dkv;  // [rows, d head_dim]

  H3Scratch view() const {
    const auto floats = [](const Tensor& x) { return static_cast<float*>(x.data); };
    return {floats(ks), floats(dks), floats(kv), floats(r), floats(y), floats(dkv)};
  }
};

Scratch MakeScratch(Device& device, const H3ConvolutionKernels& constants, int64_t rows,
                    bool backward) {
  const int64_t d = constants.d_model();
  const int64_t triples = d * constants.head_dim();
  const int64_t floats = rows * (backward ? 2 * d + 4 * triples : d + 2 * triples);
  auto* next = static_cast<float*>(
      device.Scratch(ScratchUse::kH3Rows, static_cast<size_t>(floats) * sizeof(float)));
  const auto take = [&](int64_t columns) {
    const Tensor matrix = {next, DType::kF32, rows, columns, columns};
    next += rows * columns;
    return matrix;
  };
  Scratch scratch;
  scratch.ks = take(d);
  scratch.kv = take(triples);
  scratch.y = take(triples);
  if (!backward) return scratch;
  scratch.dks = take(d);
  scratch.r = take(triples);
  scratch.dkv = take(triples);
  return scratch;
}

// One call on some of its sequences; d_o empty: the forward.
template <typename T>
class Call {
 public:
  Call(Device& device, const H3ConvolutionKernels& constants, Tensor qkv, int64_t sequences,
       bool backward)
      : device_(device),
        constants_(constants),
        qkv_(qkv),
        sequences_(sequences),
        scratch_(MakeScratch(device, constants, qkv.rows, backward)) {}

  void Forward(const Tensor& o) const {
    Convolve(device_, Shift(), {scratch_.ks});
    Expand({});
    Convolve(device_, Diagonal(), {scratch_.y});
    Launch(device_, "h3_contract", H3ContractKernel<T>, Blocks(), sizes(), rows(), scratch_.view(),
           static_cast<T*>(o.data), o.stride);
  }

  void Backward(const Tensor& d_o, const Gradient& dqkv, H3KernelGradients& sums) const {
    const bool wanted = dqkv.tensor.data != nullptr;
    Convolve(device_, Shift(), {scratch_.ks});
    Expand(d_o);
    ConvolveBackward(device_, Diagonal(),
                     {.dy = scratch_.r, .y = wanted ? scratch_.y : Tensor(), .du = {scratch_.dkv}},
                     sums.kernels);
    Launch(device_, "h3_shift_gradient", H3ShiftGradientKernel<T>, Blocks(), sizes(), rows(),
           scratch_.view());
    Gradient dk = dqkv;
    if (wanted) {
      dk.tensor = Part(dqkv.tensor, 1);
      Launch(device_, "h3_row_gradient", H3RowGradientKernel, Blocks(), sizes(), scratch_.view(),
             static_cast<const float*>(d_o.data), d_o.stride, static_cast<float*>(dqkv.tensor.data),
             dqkv.tensor.stride, dqkv.add);
    }
    ConvolveBackward(device_, Shift(), {.dy = scratch_.dks, .y = {}, .du = dk}, sums.taps);
  }

 private:
  Tensor Part(const Tensor& matrix, int64_t part) const {
    return matrix.Cols(part * constants_.d_model(), constants_.d_model());
  }
  ConvolutionCall Shift() const {
    return {.kernels = constants_.shift(), .u = Part(qkv_, 1), .sequences = sequences_};
  }
  ConvolutionCall Diagonal() const {
    return {.kernels = constants_.diagonal(), .u = scratch_.kv, .sequences = sequences_};
  }
  H3Sizes sizes() const {
    return {.d_model = static_cast<int32_t>(constants_.d_model()),
            .head_dim = static_cast<int32_t>(constants_.head_dim()),
            .head_major = constants_.output_order() == H3OutputOrder::kHeadD2};
  }
  H3Rows<T> rows() const { return {static_cast<const T*>(qkv_.data), qkv_.stride}; }
  Grid Blocks() const {
    return {.blocks = dim3(static_cast<unsigned>(qkv_.rows)), .threads = dim3(kH3RowThreads)};
  }

  void Expand(const Tensor& d_o) const {
    Launch(device_, "h3_expand", H3ExpandKernel<T>, Blocks(), sizes(), rows(),
           static_cast<const float*>(d_o.data), d_o.stride, scratch_.view());
  }

  Device& device_;
  const H3ConvolutionKernels& constants_;
  Tensor qkv_;
  int64_t sequences_;
  Scratch scratch_;
};

// run(first row, rows, sequences) for as many sequences at a time as scratch memory is meant for.
template <typename Run>
void ForSomeSequences(const H3ConvolutionKernels& constants, const Tensor& qkv, int64_t sequences,
                      const Run& run) {
  if (sequences == 0 || qkv.rows == 0) return;
  const int64_t tokens = qkv.rows / sequences;
  assert(qkv.rows == tokens * sequences && tokens <= constants.longest());
  assert(qkv.cols == 3 * constants.d_model() && qkv.dtype == constants.activations());
  const int64_t floats = tokens * constants.d_model() * constants.head_dim();
  const int64_t together =
      std::max<int64_t>(1, kScratchFloats / floats / kConvolutionChunk) * kConvolutionChunk;
  for (int64_t b = 0; b < sequences; b += together) {
    const int64_t some = std::min(together, sequences - b);
    run(b * tokens, some * tokens, some);
  }
}

}  // namespace

H3ConvolutionKernels::H3ConvolutionKernels(Device& device, const H3Parameters& p, int64_t longest,
                                           DType activations, const HeadLoop& loop)
    : output_order_(p.output_order),
      activations_(activations),
      shift_(device, H3TapsWithSkips(p, loop), p.d_model),
      diagonal_(device, H3KernelsWithSkips(p, longest, loop), p.d_model / p.head_dim) {}

void H3Convolution(Device& device, const H3ConvolutionKernels& constants, Tensor qkv,
                   int64_t sequences, Tensor o) {
  assert(o.rows == qkv.rows && o.cols == constants.d_model() && o.dtype == qkv.dtype);
  ForSomeSequences(constants, qkv, sequences, [&](int64_t first, int64_t rows, int64_t some) {
    const auto run = [&]<typename T>(T) {
      Call<T>(device, constants, qkv.Rows(first, rows), some, false).Forward(o.Rows(first, rows));
    };
    qkv.dtype == DType::kBF16 ? run(BF16()) : run(float());
  });
}

void H3ConvolutionBackward(Device& device, const H3ConvolutionKernels& constants, Tensor qkv,
                           int64_t sequences, Tensor d_o, const Gradient& dqkv,
                           H3KernelGradients& sums) {
  assert(d_o.rows == qkv.rows && d_o.cols == constants.d_model() && d_o.dtype == DType::kF32);
  ForSomeSequences(constants, qkv, sequences, [&](int64_t first, int64_t rows, int64_t some) {
    Gradient wanted = dqkv;
    if (wanted.tensor.data != nullptr) wanted.tensor = wanted.tensor.Rows(first, rows);
    const auto run = [&]<typename T>(T) {
      Call<T>(device, constants, qkv.Rows(first, rows), some, true)
          .Backward(d_o.Rows(first, rows), wanted, sums);
    };
    qkv.dtype == DType::kBF16 ? run(BF16()) : run(float());
  });
}

}  // namespace hippodrome::cuda
