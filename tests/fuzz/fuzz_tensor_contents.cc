// Any message of the Open Inference Protocol has texts or an error, and texts have one raw form.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "server/handlers/inference_parameters.h"
#include "server/handlers/tensor_contents.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

// Bytes that hold `count` texts are those texts' raw form.
void CheckRaw(const std::string& raw, int64_t count) {
  const auto texts = hippodrome::SplitTexts(raw, count);
  if (!texts.ok()) return;
  Require(static_cast<int64_t>(texts->size()) == count);
  inference::ModelInferResponse::InferOutputTensor output;
  output.set_datatype("BYTES");
  for (const std::string& text : *texts) output.mutable_contents()->add_bytes_contents(text);
  Require(hippodrome::RawContents(output) == raw);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const int64_t count : {0, 1, 2, 3}) CheckRaw(bytes, count);
  inference::ModelInferRequest request;
  if (!request.ParseFromString(bytes)) return 0;
  constexpr int64_t kMost = 1024;
  for (int i = 0; i < request.inputs_size(); ++i) {
    const auto texts = hippodrome::ReadTexts(request, i, kMost);
    if (texts.ok()) Require(static_cast<int64_t>(texts->size()) <= kMost);
  }
  (void)hippodrome::ReadEncoderParameters(request);
  (void)hippodrome::ReadGenerateParameters(request);
  return 0;
}
