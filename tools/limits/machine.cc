#include "tools/limits/machine.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/gemm/microkernel.h"
#include "kernels/cpu/gemm/microkernel_amx.h"
#include "tools/machine/cpu_topology.h"
#include "tools/machine/system_memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/limits/machine.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hippodrome {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = HWY_CAPPED(float, 16);
using V = hn::Vec<D>;
constexpr int64_t kLanes = hn::MaxLanes(D());

// Adds up n floats in eight chains. REQUIRES: n a multiple of eight vectors.
float ReadAll(const float* x, int64_t n) {
  const D d;
  V sums[8];
  for (V& sum : sums) sum = hn::Zero(d);
  for (int64_t i = 0; i < n; i += 8 * kLanes) {
    // The hardware's own prefetching stops at 4 KiB borders.
    for (int j = 0; j < 8; ++j) __builtin_prefetch(x + i + (j + 64) * kLanes);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) sums[j] = hn::Add(sums[j], hn::LoadU(d, x + i + j * kLanes));
  }
  for (int j = 1; j < 8; ++j) sums[0] = hn::Add(sums[0], sums[j]);
  return hn::GetLane(hn::SumOfLanes(d, sums[0]));
}

// `rounds` multiply-adds in each of twelve chains; returns the operations.
int64_t MultiplyAdd(int64_t rounds, float* result) {
  const D d;
  const V a = hn::Set(d, 0.5f + *result);
  V sums[12];
  for (V& sum : sums) sum = a;
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (V& sum : sums) sum = hn::MulAdd(sum, a, a);
  }
  for (int j = 1; j < 12; ++j) sums[0] = hn::Add(sums[0], sums[j]);
  *result = hn::GetLane(hn::SumOfLanes(d, sums[0]));
  return rounds * 12 * kLanes * 2;
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hippodrome {
namespace {

HWY_EXPORT(ReadAll);
HWY_EXPORT(MultiplyAdd);

constexpr int kRuns = 7;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The rate of kRuns runs of `work`, which returns how much it did.
template <typename Work>
double RateOf(OfRuns which, const Work& work) {
  std::vector<double> rates(kRuns);
  for (double& rate : rates) {
    const double start = Now();
    const double amount = work();
    rate = amount / (Now() - start);
  }
  return which == OfRuns::kBest ? std::ranges::max(rates) : Median(std::move(rates));
}

// One run of `loop` on every thread at once; loop returns its operations.
template <typename Loop>
double RunOnAll(ThreadPool& pool, const Loop& loop) {
  std::vector<int64_t> operations(static_cast<size_t>(pool.threads()));
  pool.Run(pool.threads(), [&](int64_t index, int) {
    float seed = 0;
    operations[static_cast<size_t>(index)] = loop(&seed);
    volatile float keep = seed;
    (void)keep;
  });
  double total = 0;
  for (int64_t count : operations) total += static_cast<double>(count);
  return total;
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) int64_t DotBF16(int64_t rounds,
                                                                                float* result) {
  const __m512bh a = (__m512bh)_mm512_set1_epi32(0x3f803f80 + static_cast<int>(*result));
  __m512 sums[24];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 24
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, a, a);
  }
  for (int j = 1; j < 24; ++j) sums[0] = _mm512_add_ps(sums[0], sums[j]);
  *result = _mm512_cvtss_f32(sums[0]);
  return rounds * 24 * 32 * 2;
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"))) int64_t DotInt8(int64_t rounds,
                                                                                float* result) {
  const __m512i a = _mm512_set1_epi8(static_cast<char>(1 + static_cast<int>(*result)));
  __v16si sums[24];  // of __m512i GCC would keep them in memory
  for (__v16si& sum : sums) sum = (__v16si)_mm512_setzero_si512();
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 24
    for (__v16si& sum : sums) sum = (__v16si)_mm512_dpbusd_epi32((__m512i)sum, a, a);
  }
  for (int j = 1; j < 24; ++j) sums[0] += sums[j];
  *result = static_cast<float>(sums[0][0]);
  return rounds * 24 * 64 * 2;
}

// Four sums, zero, and four operands that are not: products of zeros take a fifth less time.
__attribute__((target("amx-tile"))) void LoadTiles() {
  alignas(64) uint32_t operand[cpu::kAmxRows][16];
  uint32_t bits = 1;
  for (auto& row : operand) {
    for (uint32_t& pair : row) {  // of bf16 numbers between 1 and 2; or of bytes
      bits = bits * 1664525 + 1013904223;
      pair = 0x3f803f80 | (bits & 0x7f007f);
    }
  }
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, operand, sizeof(operand[0]));
  _tile_loadd(5, operand, sizeof(operand[0]));
  _tile_loadd(6, operand, sizeof(operand[0]));
  _tile_loadd(7, operand, sizeof(operand[0]));
}

// Products of tiles that stay in the matrix registers, into four sums. REQUIRES: cpu::HaveAmx(), or
// cpu::HaveInt8Amx() of bytes.
__attribute__((target("amx-tile,amx-int8"))) int64_t DotInt8Amx(int64_t rounds, float* /*result*/) {
  const cpu::AmxRegisters registers;
  LoadTiles();
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbsud(0, 4, 6);
    _tile_dpbsud(1, 4, 7);
    _tile_dpbsud(2, 5, 6);
    _tile_dpbsud(3, 5, 7);
  }
  return rounds * 4 * 16 * 16 * 64 * 2;
}
__attribute__((target("amx-tile,amx-bf16"))) int64_t DotAmx(int64_t rounds, float* /*result*/) {
  const cpu::AmxRegisters registers;
  LoadTiles();
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  return rounds * 4 * 16 * 16 * 32 * 2;
}
#else
int64_t DotInt8(int64_t, float*) { return 0; }
int64_t DotBF16(int64_t, float*) { return 0; }
int64_t DotAmx(int64_t, float*) { return 0; }
int64_t DotInt8Amx(int64_t, float*) { return 0; }
#endif

constexpr int64_t kRounds = 2000000;  // a few milliseconds
constexpr int64_t kAmxRounds = kRounds / 8;

// All rates are of all threads of `pool` together, of some short runs (about 0.1 s each call).
// Cores and memory are shared with whatever else runs: measure next to what is compared.

// Bytes per second read from memory in huge pages, over more bytes than the caches hold.
double MeasureReadBandwidth(ThreadPool& pool, OfRuns which) {
  constexpr size_t kBytes = size_t{256} << 20;
  // Pieces small enough that threads of unequal speed finish together.
  constexpr int64_t kPiece = int64_t{1} << 18;
  const int64_t pieces =
      std::max<int64_t>(1, static_cast<int64_t>(kBytes / sizeof(float)) / kPiece);
  const auto memory = AllocateZeroed(static_cast<size_t>(pieces * kPiece) * sizeof(float));
  float* data = static_cast<float*>(memory.get());
  for (int64_t i = 0; i < pieces * kPiece; i += 512) data[i] = 1;  // own every page
  std::vector<float> sums(static_cast<size_t>(pieces));
  return RateOf(which, [&] {
    pool.Run(pieces, [&](int64_t i, int) {
      sums[static_cast<size_t>(i)] = HWY_DYNAMIC_DISPATCH(ReadAll)(data + i * kPiece, kPiece);
    });
    return static_cast<double>(pieces * kPiece) * sizeof(float);
  });
}

// Floating-point operations per second of f32 multiply-adds (two operations each) in registers.
double MeasureF32Rate(ThreadPool& pool, OfRuns which) {
  return RateOf(which, [&] {
    return RunOnAll(pool,
                    [](float* seed) { return HWY_DYNAMIC_DISPATCH(MultiplyAdd)(kRounds, seed); });
  });
}

// The same of bf16 products, in matrix registers (AMX) or as dot products; 0 where the processor
// has neither.
double MeasureBF16Rate(ThreadPool& pool, OfRuns which) {
  if (cpu::HaveAmx()) {
    return RateOf(which, [&] {
      return RunOnAll(pool, [](float* seed) { return DotAmx(kAmxRounds, seed); });
    });
  }
  if (!cpu::HaveBF16Dot()) return 0;
  return RateOf(which,
                [&] { return RunOnAll(pool, [](float* seed) { return DotBF16(kRounds, seed); }); });
}

// The same of products of bytes.
double MeasureInt8Rate(ThreadPool& pool, OfRuns which) {
  if (cpu::HaveInt8Amx()) {
    return RateOf(which, [&] {
      return RunOnAll(pool, [](float* seed) { return DotInt8Amx(kAmxRounds, seed); });
    });
  }
  if (!cpu::HaveInt8Dot()) return 0;
  return RateOf(which,
                [&] { return RunOnAll(pool, [](float* seed) { return DotInt8(kRounds, seed); }); });
}

}  // namespace

Ceilings MeasureCeilings(const CpuOptions& cpu, OfRuns which) {
  const std::shared_ptr<ThreadPool> shared = MakeThreadPool(cpu);
  ThreadPool& pool = *shared;
  Ceilings ceilings{.threads = pool.threads()};
  ceilings.read_bytes = MeasureReadBandwidth(pool, which);
  ceilings.f32_flops = MeasureF32Rate(pool, which);
  ceilings.bf16_flops = std::max(MeasureBF16Rate(pool, which), ceilings.f32_flops);
  ceilings.int8_flops = std::max(MeasureInt8Rate(pool, which), ceilings.f32_flops);
  return ceilings;
}

Ceilings BetterOf(const Ceilings& a, const Ceilings& b) {
  return {std::max(a.threads, b.threads), std::max(a.read_bytes, b.read_bytes),
          std::max(a.f32_flops, b.f32_flops), std::max(a.bf16_flops, b.bf16_flops),
          std::max(a.int8_flops, b.int8_flops)};
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Ceilings MedianOf(std::span<const Ceilings> all) {
  const auto median = [&](double Ceilings::* rate) {
    std::vector<double> rates;
    for (const Ceilings& one : all) rates.push_back(one.*rate);
    return Median(std::move(rates));
  };
  return {.threads = all.front().threads,
          .read_bytes = median(&Ceilings::read_bytes),
          .f32_flops = median(&Ceilings::f32_flops),
          .bf16_flops = median(&Ceilings::bf16_flops),
          .int8_flops = median(&Ceilings::int8_flops)};
}

int64_t FreeMemory() {
  return ReadSystemMemory().available_bytes.value_or(std::numeric_limits<int64_t>::max());
}

std::string MachineName() {
  const std::string name = ReadProcessorName().name;
  return (name.empty() ? "unknown processor" : name) + ", " +
         std::to_string(std::thread::hardware_concurrency()) + " cores";
}

}  // namespace hippodrome
#endif  // HWY_ONCE
