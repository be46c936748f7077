// Element types of tensors and of weight files.
#ifndef HIPPODROME_KERNELS_DTYPE_H_
#define HIPPODROME_KERNELS_DTYPE_H_

#include <bit>
#include <cstddef>
#include <cstdint>

namespace hippodrome {

// kI4: of weights alone, two in a byte, so that no tensor has it.
enum class DType : uint8_t { kF64, kF32, kF16, kBF16, kI64, kI32, kI8, kU8, kI4 };

// Bytes per element; 0 for kI4.
constexpr size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kI8:
    case DType::kU8:
      return 1;
    case DType::kI4:
      return 0;
  }
  return 0;
}

// Bytes of a row of `elements`; of kI4 the last byte may have one.
constexpr int64_t RowBytes(DType dtype, int64_t elements) {
  return dtype == DType::kI4 ? (elements + 1) / 2 : elements * static_cast<int64_t>(SizeOf(dtype));
}

// Upper case, as in safetensors headers: "F32", "BF16", ...
constexpr const char* Name(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "F64";
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
    case DType::kI64:
      return "I64";
    case DType::kI32:
      return "I32";
    case DType::kI8:
      return "I8";
    case DType::kU8:
      return "U8";
    case DType::kI4:
      return "I4";
  }
  return "?";
}

// The types of weights, from the widest to the narrowest; of kI8 and kI4:
// kernels/quantized_group.h.
inline constexpr DType kWeightTypes[] = {DType::kF32, DType::kBF16, DType::kI8, DType::kI4};

// The type of the embedding and of the head among weights of a type: these few bits more are paid
// once for a token, and each logit has its own.
constexpr DType EmbeddingType(DType weights) {
  return weights == DType::kI4 ? DType::kI8 : weights;
}

// The type of the keys and values that attention keeps beside weights of a type.
constexpr DType KeyValueType(DType weights) {
  return weights == DType::kF32 ? DType::kF32 : DType::kBF16;
}

// Lower case, as options and reports call types of weights: "f32", "bf16", "int8", "int4".
constexpr const char* WeightsName(DType weights) {
  switch (weights) {
    case DType::kBF16:
      return "bf16";
    case DType::kI8:
      return "int8";
    case DType::kI4:
      return "int4";
    default:
      return "f32";
  }
}

// A bfloat16: the upper half of an IEEE-754 binary32.
struct BF16 {
  uint16_t bits = 0;
};

constexpr float ToFloat(BF16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

// Rounds to nearest, ties to even; NaN stays NaN.
constexpr BF16 ToBF16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

// IEEE-754 binary16 (given as its bits) to binary32, exactly.
constexpr float HalfToFloat(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_DTYPE_H_
