// Convolutions and their gradients by "right-angle" transforms (right_angle.cuh). With W the
// weights exp(i pi t / 2L) and F the transform of L points,
//   y = Re W* F^-1 S F W u,  so  du = Re W* F^-1 S* F W dy  and  dK = Re W* F^-1 (F W u)* (F W dy),
// S = F W K. A block has all tokens of a few columns, takes the sequences of a chunk one after
// another, and sums spectra of dK, which are transformed back once.
#include <algorithm>
#include <cassert>
#include <complex>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/conv/convolution_view.cuh"
#include "kernels/cuda/conv/fft_tables.h"
#include "kernels/cuda/conv/right_angle.cuh"

namespace hippodrome::cuda {
namespace {

// A thread needs more registers than in the forward kernels: 512 threads have 128 each.
template <int kPoints>
struct FftConvBlock {
  static constexpr int kThreads = 512;
  static constexpr int kGroup = kPoints / kFftValues;  // threads of a column
  static constexpr int kColumns = kThreads / kGroup;
  // Floats of a row: neighbouring columns start in different banks.
  static constexpr int kRow = kPoints + kWarp / kColumns;
  // The transforms, in whose memory the rows are before and after.
  static constexpr int kSharedBytes = kColumns * kFftShared<kPoints> * 8;
  static_assert(kColumns * kRow * 4 <= kSharedBytes);
};

template <typename T>
struct FftConvArguments {
  ConvolutionSizes sizes;
  RightAngleTables tables;
  SequenceRows<const T> u;
  SequenceRows<const float> dy;  // or none
  SequenceResult y;              // or none
  SequenceResult du;             // or none
  float4* spectra;               // of sums: [chunks, columns of all blocks, L / 2]
  float* partial;                // [chunks, lags, columns]
};

// The columns of one block, whose threads call these functions together, with nobody in the shared
// memory before and after.
template <int kPoints>
class FftConvColumns {
 public:
  using Block = FftConvBlock<kPoints>;
  using Points = float2[kFftValues];

  __device__ FftConvColumns(const ConvolutionSizes& sizes, const RightAngleTables& tables)
      : sizes_(sizes), tables_(tables), rows_(reinterpret_cast<float*>(SharedMemory())) {}

  __device__ int own_column() const {
    return static_cast<int>(blockIdx.x) * Block::kColumns +
           Forget(static_cast<int>(threadIdx.x)) / Block::kGroup;
  }
  __device__ int own_thread() const {
    return Forget(static_cast<int>(threadIdx.x)) % Block::kGroup;
  }

  // z = F W x, of the columns of a matrix.
  template <typename T>
  __device__ void Transform(const SequenceRows<const T>& x, int64_t sequence, Points& z) const {
    ForEachTime([&](float& value, int t, int column) {
      const bool exists = column < sizes_.columns && t < sizes_.tokens;
      value = exists ? Widen(*x.At(sizes_, sequence, t, column)) : 0.0f;
    });
    __syncthreads();
    const float* row = Row();
    const float2 weight = tables_.turns[own_thread()];
    Unroll<kFftValues>([&](auto j) {
      const float2 w = ComplexMultiply(weight, ColumnWeight(j));
      const float value = row[j * Block::kGroup];
      z[j] = make_float2(value * w.x, value * w.y);
    });
    __syncthreads();
    Fft().Forward(z);
    __syncthreads();
  }

  // store(value, t, column) for the column Re W* F^-1 z, times L.
  template <typename Store>
  __device__ void Invert(Points& z, const Store& store) const {
    Fft().Inverse(z);
    __syncthreads();
    float* row = Row();
    const float2 weight = tables_.turns[own_thread()];
    Unroll<kFftValues>([&](auto j) {
      const float2 w = ComplexMultiply(weight, ColumnWeight(j));
      row[j * Block::kGroup] = z[j].x * w.x + z[j].y * w.y;
    });
    __syncthreads();
    ForEachTime([&](float& value, int t, int column) {
      if (column < sizes_.columns) store(value, t, column);
    });
    __syncthreads();
  }

  // The spectrum S / L of the own column's kernel.
  __device__ const float4* Spectrum() const {
    const int head = sizes_.Head(min(own_column(), sizes_.columns - 1));
    return tables_.spectra + int64_t{head} * (kPoints / 2);
  }

 private:
  __device__ float* Row() const {
    const int thread = Forget(static_cast<int>(threadIdx.x));
    return rows_ + thread / Block::kGroup * Block::kRow + thread % Block::kGroup;
  }
  __device__ BlockFft<kPoints> Fft() const {
    const int row = Forget(static_cast<int>(threadIdx.x)) / Block::kGroup;
    return {own_thread(), reinterpret_cast<float2*>(rows_) + row * kFftShared<kPoints>,
            tables_.twiddles};
  }

  // body(x, t, column), x in shared memory, for the times that this thread has when neighbouring
  // threads have neighbouring columns.
  template <typename Body>
  __device__ void ForEachTime(const Body& body) const {
    const int thread = Forget(static_cast<int>(threadIdx.x));
    const int row = thread % Block::kColumns;
    const int first = thread / Block::kColumns;
    const int column = static_cast<int>(blockIdx.x) * Block::kColumns + row;
    float* x = rows_ + row * Block::kRow + first;
#pragma unroll 4
    for (int i = 0; i < kFftValues; ++i) {
      body(x[i * Block::kGroup], first + i * Block::kGroup, column);
    }
  }

  const ConvolutionSizes& sizes_;
  const RightAngleTables& tables_;
  float* rows_;
};

// z conj(the spectrum of one kernel).
template <int kPoints>
__device__ inline void MultiplyConjugateSpectrum(float2 (&z)[kFftValues], const float4* spectrum,
                                                 int thread) {
  Unroll<kFftValues / 2>([&](auto i) {
    const float4 pair = spectrum[i * BlockFft<kPoints>::kThreads + thread];
    z[2 * i] = ComplexMultiplyConjugate(z[2 * i], make_float2(pair.x, pair.y));
    z[2 * i + 1] = ComplexMultiplyConjugate(z[2 * i + 1], make_float2(pair.z, pair.w));
  });
}

// sums (+)= conj(a) b, in the order of a spectrum.
template <int kPoints>
__device__ inline void AddSpectra(const float2 (&a)[kFftValues], const float2 (&b)[kFftValues],
                                  bool first, float4* sums, int thread) {
  Unroll<kFftValues / 2>([&](auto i) {
    float4& pair = sums[i * BlockFft<kPoints>::kThreads + thread];
    const float2 low = ComplexMultiplyConjugate(b[2 * i], a[2 * i]);
    const float2 high = ComplexMultiplyConjugate(b[2 * i + 1], a[2 * i + 1]);
    float4 sum = make_float4(low.x, low.y, high.x, high.y);
    if (!first) {
      const float4 old = pair;
      sum = make_float4(old.x + sum.x, old.y + sum.y, old.z + sum.z, old.w + sum.w);
    }
    pair = sum;
  });
}

template <int kPoints>
__device__ inline void LoadSpectrum(const float4* spectrum, int thread, float2 (&z)[kFftValues]) {
  Unroll<kFftValues / 2>([&](auto i) {
    const float4 pair = spectrum[i * BlockFft<kPoints>::kThreads + thread];
    z[2 * i] = make_float2(pair.x, pair.y);
    z[2 * i + 1] = make_float2(pair.z, pair.w);
  });
}

// spectra [heads, L / 2]: S / L of the kernels [count, heads], which are the columns of one
// sequence. Blocks: (columns).
template <int kPoints>
__global__ void __launch_bounds__(FftConvBlock<kPoints>::kThreads)
    KernelSpectraKernel(ConvolutionSizes sizes, RightAngleTables tables, const float* kernels,
                        float4* spectra) {
  const FftConvColumns<kPoints> block(sizes, tables);
  float2 z[kFftValues];
  block.Transform(SequenceRows<const float>{kernels, sizes.columns}, 0, z);
  if (block.own_column() >= sizes.columns) return;
  constexpr float kScale = 1.0f / kPoints;
  float4* spectrum = spectra + int64_t{block.own_column()} * (kPoints / 2);
  const int thread = block.own_thread();
  Unroll<kFftValues / 2>([&](auto i) {
    spectrum[i * BlockFft<kPoints>::kThreads + thread] = make_float4(
        z[2 * i].x * kScale, z[2 * i].y * kScale, z[2 * i + 1].x * kScale, z[2 * i + 1].y * kScale);
  });
}

// Blocks: (columns, chunks of sequences).
template <typename T, int kPoints>
__global__ void __launch_bounds__(FftConvBlock<kPoints>::kThreads)
    FftConvKernel(FftConvArguments<T> a) {
  using Block = FftConvBlock<kPoints>;
  const ConvolutionSizes& sizes = a.sizes;
  const FftConvColumns<kPoints> block(sizes, a.tables);
  const int begin = static_cast<int>(blockIdx.y) * kConvolutionChunk;
  const int end = min(begin + kConvolutionChunk, sizes.sequences);
  const auto sums = [&] {
    const int64_t columns = int64_t{gridDim.x} * Block::kColumns;
    return a.spectra + (blockIdx.y * columns + block.own_column()) * (kPoints / 2);
  };
  for (int sequence = begin; sequence < end; ++sequence) {
    float2 zu[kFftValues];
    block.Transform(a.u, sequence, zu);
    if (a.y.rows.data != nullptr) {
      float2 z[kFftValues];
      Unroll<kFftValues>([&](auto i) { z[i] = zu[i]; });
      MultiplySpectrum<kPoints>(z, block.Spectrum(), block.own_thread());
      block.Invert(z, [&](float y, int t, int column) {
        if (t < sizes.tokens) a.y.Store(sizes, sequence, t, column, y);
      });
    }
    if (a.dy.data == nullptr) continue;
    float2 z[kFftValues];
    block.Transform(a.dy, sequence, z);
    AddSpectra<kPoints>(zu, z, sequence == begin, sums(), block.own_thread());
    if (a.du.rows.data == nullptr) continue;
    MultiplyConjugateSpectrum<kPoints>(z, block.Spectrum(), block.own_thread());
    block.Invert(z, [&](float du, int t, int column) {
      if (t < sizes.tokens) a.du.Store(sizes, sequence, t, column, du);
    });
  }
  if (a.dy.data == nullptr) return;
  float2 z[kFftValues];
  LoadSpectrum<kPoints>(sums(), block.own_thread(), z);
  block.Invert(z, [&](float dk, int lag, int column) {
    if (lag >= sizes.lags) return;
    constexpr float kScale = 1.0f / kPoints;
    a.partial[(int64_t{blockIdx.y} * sizes.lags + lag) * sizes.columns + column] = dk * kScale;
  });
}

constexpr int kShortestTransform = 512;
// More points would need more threads than have enough registers.
constexpr int kLongestTransform = 8192;

// use(std::integral_constant<int, points>()) with the shortest transform that holds the tokens.
template <typename Use>
auto WithTransformOf(int64_t tokens, const Use& use) {
  return WithTransform<kShortestTransform>(tokens, [&](auto points) {
    return use(std::integral_constant<int, std::min<int>(points, kLongestTransform)>());
  });
}

int64_t ColumnBlocks(int64_t columns, int block_columns) {
  return (columns + block_columns - 1) / block_columns;
}

// In one piece of memory: [heads, points] spectra, then twiddles, then turns.
template <int kPoints>
RightAngleTables View(const ConvolutionKernels& kernels, const void* memory) {
  const auto* spectra = static_cast<const float2*>(memory);
  const float2* twiddles = spectra + kernels.heads() * kPoints;
  return {.spectra = reinterpret_cast<const float4*>(spectra),
          .twiddles = reinterpret_cast<const float4*>(twiddles),
          .turns = twiddles + FftTwiddleCount(kPoints)};
}

template <int kPoints>
ConvolutionTables MakeTables(Device& device, const ConvolutionKernels& kernels) {
  using Block = FftConvBlock<kPoints>;
  std::vector<std::complex<float>> tables = FftTwiddles(kPoints);
  const std::vector<std::complex<float>> turns = RightAngleTurns(kPoints);
  tables.insert(tables.end(), turns.begin(), turns.end());
  const auto values = static_cast<size_t>(kernels.heads() * kPoints);
  const size_t bytes = (values + tables.size()) * sizeof(float2);
  std::shared_ptr<void> memory = AllocateZeroed(device, bytes);
  auto* spectra = static_cast<float2*>(memory.get());
  CopyToDevice(device, tables.data(), spectra + values, tables.size() * sizeof(float2));
  const ConvolutionSizes sizes = {
      .sequences = 1,
      .tokens = static_cast<int32_t>(std::min<int64_t>(kernels.count(), kPoints)),
      .columns = static_cast<int32_t>(kernels.heads()),
      .heads = static_cast<int32_t>(kernels.heads()),
      .count = static_cast<int32_t>(kernels.count()),
      .lags = 0,
      .backward = false};
  Launch(device, "kernel_spectra", KernelSpectraKernel<kPoints>,
         {.blocks = dim3(static_cast<unsigned>(ColumnBlocks(kernels.heads(), Block::kColumns))),
          .threads = dim3(Block::kThreads),
          .shared_bytes = Block::kSharedBytes},
         sizes, View<kPoints>(kernels, spectra), kernels.values(),
         reinterpret_cast<float4*>(spectra));
  return {std::move(memory), static_cast<int64_t>(bytes)};
}

template <typename T, int kPoints>
const float* Start(Device& device, const ConvolutionTask& task) {
  using Block = FftConvBlock<kPoints>;
  const ConvolutionKernels& kernels = task.call.kernels;
  const void* tables =
      kernels.Tables(kPoints, [&] { return MakeTables<kPoints>(device, kernels); });
  const int64_t blocks = ColumnBlocks(task.sizes.columns, Block::kColumns);
  float4* spectra = nullptr;
  float* partial = nullptr;
  if (task.dy.data != nullptr) {
    const int64_t sums = task.chunks() * blocks * Block::kColumns * (kPoints / 2);
    const size_t bytes = static_cast<size_t>(sums) * sizeof(float4) +
                         static_cast<size_t>(task.partial_floats()) * sizeof(float);
    spectra = static_cast<float4*>(device.Scratch(ScratchUse::kKernelGradients, bytes));
    partial = reinterpret_cast<float*>(spectra + sums);
  }
  const FftConvArguments<T> arguments = {.sizes = task.sizes,
                                         .tables = View<kPoints>(kernels, tables),
                                         .u = InputRows<T>(task.call.u),
                                         .dy = InputRows<float>(task.dy),
                                         .y = Result(task.y),
                                         .du = Result(task.du),
                                         .spectra = spectra,
                                         .partial = partial};
  Launch(device, "fft_conv", FftConvKernel<T, kPoints>,
         {.blocks = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(task.chunks())),
          .threads = dim3(Block::kThreads),
          .shared_bytes = Block::kSharedBytes},
         arguments);
  return partial;
}

}  // namespace

bool CanConvolveByFft(int64_t tokens, size_t shared_bytes) {
  return tokens <= kLongestTransform && WithTransformOf(tokens, [&](auto points) {
           return FftConvBlock<decltype(points)::value>::kSharedBytes <= shared_bytes;
         });
}

const float* ConvolveByFft(Device& device, const ConvolutionTask& task) {
  assert(CanConvolveByFft(task.call.tokens(), device.shared_bytes()));
  return WithTransformOf(task.call.tokens(), [&](auto points) {
    constexpr int kPoints = decltype(points)::value;
    return task.call.u.dtype == DType::kBF16 ? Start<BF16, kPoints>(device, task)
                                             : Start<float, kPoints>(device, task);
  });
}

}  // namespace hippodrome::cuda
