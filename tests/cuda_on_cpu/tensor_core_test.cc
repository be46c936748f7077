#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <string>

#include "kernels/cuda/base/mma.cuh"
#include "tests/cuda_on_cpu/device_array.h"

namespace hippodrome::cuda::tensor_core_test {
namespace {

using cuda_on_cpu::DeviceArray;
using cuda_on_cpu::InEveryOrder;
using cuda_on_cpu::RunKernel;
using ::testing::HasSubstr;

std::vector<float> RandomValues(size_t n, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(n);
  for (float& value : values) value = uniform(generator);
  return values;
}

// What a test gives to one warp: A [16, 16], B [16, 8], C and D [16, 8], row-major.
struct Product {
  const float* a;
  const float* b;
  const float* c;
  float* d;
};

__device__ void LoadSums(const Product& p, float (&d)[4]) {
  const int g = static_cast<int>(threadIdx.x) / 4;
  const int t = static_cast<int>(threadIdx.x) % 4;
  for (int i = 0; i < 4; ++i) d[i] = p.c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
}
__device__ void StoreSums(const Product& p, const float (&d)[4]) {
  const int g = static_cast<int>(threadIdx.x) / 4;
  const int t = static_cast<int>(threadIdx.x) % 4;
  for (int i = 0; i < 4; ++i) p.d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
}

// pack: two numbers as an operand of the instruction.
template <uint32_t (*pack)(float, float),
          void (*multiply)(float (&)[4], const uint32_t (&)[4], const uint32_t (&)[2])>
__global__ void Multiply(Product p) {
  const int g = static_cast<int>(threadIdx.x) / 4;
  const int t = static_cast<int>(threadIdx.x) % 4;
  float d[4];
  LoadSums(p, d);
  uint32_t a[4];
  for (int i = 0; i < 4; ++i) {
    const float* pair = p.a + (g + i % 2 * 8) * 16 + 2 * t + i / 2 * 8;
    a[i] = pack(pair[0], pair[1]);
  }
  uint32_t b[2];
  for (int i = 0; i < 2; ++i) {
    const float* pair = p.b + (2 * t + i * 8) * 8 + g;
    b[i] = pack(pair[0], pair[8]);
  }
  multiply(d, a, b);
  StoreSums(p, d);
}

double RoundedToBF16(float x) { return ToFloat(ToBF16(x)); }
double RoundedToF16(float x) { return HalfToFloat(static_cast<uint16_t>(PackF16(x, 0))); }

// Against a product in double of the operands that the instruction sees; 16 roundings of f32.
void CheckProduct(void (*kernel)(Product), double (*operand)(float), uint32_t seed) {
  constexpr size_t k_size = 16;
  const std::vector<float> a = RandomValues(16 * k_size, 3 * seed);
  const std::vector<float> b = RandomValues(8 * k_size, 3 * seed + 1);
  const std::vector<float> c = RandomValues(16 * 8, 3 * seed + 2);
  const DeviceArray<float> da(a), db(b), dc(c), dd(16 * 8);
  RunKernel(kernel, 1, 32, 0, {da.data(), db.data(), dc.data(), dd.data()});
  const std::vector<float> d = dd.values();
  for (size_t i = 0; i < 16; ++i) {
    for (size_t j = 0; j < 8; ++j) {
      double sum = c[i * 8 + j];
      double size = std::abs(sum);
      for (size_t k = 0; k < k_size; ++k) {
        const double product = operand(a[i * k_size + k]) * operand(b[k * 8 + j]);
        sum += product;
        size += std::abs(product);
      }
      ASSERT_NEAR(d[i * 8 + j], sum, size * k_size * 0x1p-24) << i << ", " << j;
    }
  }
}

TEST(TensorCoreTest, MultipliesBF16) {
  InEveryOrder([] {
    for (uint32_t seed = 0; seed < 20; ++seed) {
      CheckProduct(Multiply<PackBF16, MmaBF16>, RoundedToBF16, seed);
    }
  });
}

TEST(TensorCoreTest, MultipliesF16) {
  InEveryOrder([] {
    for (uint32_t seed = 0; seed < 20; ++seed) {
      CheckProduct(Multiply<PackF16, MmaF16>, RoundedToF16, seed);
    }
  });
}

// A [16, 32], B [32, 8], C and D [16, 8], row-major.
struct IntegerProduct {
  const int8_t* a;
  const int8_t* b;
  const int32_t* c;
  int32_t* d;
};

__global__ void MultiplyS8(IntegerProduct p) {
  const int g = static_cast<int>(threadIdx.x) / 4;
  const int t = static_cast<int>(threadIdx.x) % 4;
  const auto pack = [](const int8_t* first, int step) {
    uint32_t word = 0;
    for (int i = 0; i < 4; ++i) word |= uint32_t{static_cast<uint8_t>(first[i * step])} << 8 * i;
    return word;
  };
  uint32_t a[4];
  for (int i = 0; i < 4; ++i) a[i] = pack(p.a + (g + i % 2 * 8) * 32 + 4 * t + i / 2 * 16, 1);
  uint32_t b[2];
  for (int i = 0; i < 2; ++i) b[i] = pack(p.b + (4 * t + i * 16) * 8 + g, 8);
  int32_t d[4];
  for (int i = 0; i < 4; ++i) d[i] = p.c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
  MmaS8(d, a, b);
  for (int i = 0; i < 4; ++i) p.d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
}

TEST(TensorCoreTest, MultipliesS8) {
  InEveryOrder([] {
    std::mt19937 generator(7);
    std::uniform_int_distribution<int> byte(-128, 127);
    std::vector<int8_t> a(16 * 32), b(32 * 8);
    for (auto* bytes : {&a, &b}) {
      for (int8_t& value : *bytes) value = static_cast<int8_t>(byte(generator));
    }
    std::vector<int32_t> c(16 * 8);
    for (int32_t& value : c) value = 1000 * byte(generator);
    const DeviceArray<int8_t> da(a), db(b);
    const DeviceArray<int32_t> dc(c), dd(16 * 8);
    RunKernel(MultiplyS8, 1, 32, 0, {da.data(), db.data(), dc.data(), dd.data()});
    for (size_t i = 0; i < 16; ++i) {
      for (size_t j = 0; j < 8; ++j) {
        for (size_t k = 0; k < 32; ++k) c[i * 8 + j] += a[i * 32 + k] * b[k * 8 + j];
      }
    }
    EXPECT_EQ(dd.values(), c);
  });
}

// ---- Matrices from shared memory ----------------------------------------------------------------

// Element (row, col) of matrix m is 256 m + 16 row + col; rows lie `stride` bytes apart.
template <bool kTransposed>
__global__ void LoadFour(int stride, uint4* out) {
  char* shared = SharedMemory();
  const int lane = static_cast<int>(threadIdx.x);
  for (int col = 0; col < 8; ++col) {
    reinterpret_cast<uint16_t*>(shared + lane * stride)[col] =
        static_cast<uint16_t>(lane / 8 * 256 + lane % 8 * 16 + col);
  }
  __syncwarp();
  uint32_t r[4];
  if (kTransposed) {
    LoadMatricesTransposed(r, shared + lane * stride);
  } else {
    LoadMatrices(r, shared + lane * stride);
  }
  out[lane] = make_uint4(r[0], r[1], r[2], r[3]);
}

TEST(TensorCoreTest, LoadsMatrices) {
  InEveryOrder([] {
    for (const int stride : {16, 48}) {
      const DeviceArray<uint4> plain(32), transposed(32);
      const size_t bytes = static_cast<size_t>(32 * stride);
      RunKernel(LoadFour<false>, 1, 32, bytes, stride, plain.data());
      RunKernel(LoadFour<true>, 1, 32, bytes, stride, transposed.data());
      for (uint32_t lane = 0; lane < 32; ++lane) {
        const uint32_t g = lane / 4;
        const uint32_t t = lane % 4;
        const uint4 p = plain.values()[lane];
        const uint32_t first = 16 * g + 2 * t;
        EXPECT_EQ(p.x, first | (first + 1) << 16);
        EXPECT_EQ(p.w, (first + 768) | (first + 769) << 16);
        const uint4 q = transposed.values()[lane];
        const uint32_t down = 16 * (2 * t) + g;
        EXPECT_EQ(q.y, (down + 256) | (down + 272) << 16);
        EXPECT_EQ(q.z, (down + 512) | (down + 528) << 16);
      }
    }
  });
}

__global__ void LoadMisaligned() {
  uint32_t r[4];
  LoadMatrices(r, SharedMemory() + 16 * threadIdx.x + 8);
}
__global__ void MultiplyHalfAWarp() {
  float d[4] = {};
  if (threadIdx.x < 16) MmaBF16(d, {1, 2, 3, 4}, {5, 6});
}

TEST(TensorCoreTest, FaultsAreErrors) {
  const auto fault_of = [](void (*kernel)()) -> std::string {
    try {
      RunKernel(kernel, 1, 32, 1024);
    } catch (const std::logic_error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(fault_of(LoadMisaligned), HasSubstr("not aligned to 16 bytes"));
  EXPECT_THAT(fault_of(MultiplyHalfAWarp), HasSubstr("16 at an operation of their warp"));
}

}  // namespace
}  // namespace hippodrome::cuda::tensor_core_test
