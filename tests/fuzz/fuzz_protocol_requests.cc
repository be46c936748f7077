// Any body is a call of text-generation-inference, of text-embeddings-inference or of the Open
// Inference Protocol, or an error. The first byte chooses the route; of 'i' the second one says how
// much of the rest is JSON before binary tensors.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/parameter_ranges.h"
#include "server/handlers/inference_parameters.h"
#include "server/json/json_encoding_requests.h"
#include "server/json/kserve_json.h"
#include "server/json/tei_json.h"
#include "server/json/tgi_json.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

// What was taken is in its range.
void CheckNumbers(const hippodrome::v1::GenerateRequest& request) {
  using hippodrome::CheckParameter;
  if (request.has_temperature()) {
    Require(CheckParameter(hippodrome::kTemperatureRange, request.temperature()).ok());
  }
  if (request.has_top_p()) Require(CheckParameter(hippodrome::kTopPRange, request.top_p()).ok());
  if (request.has_max_tokens()) {
    Require(CheckParameter(hippodrome::kMaxTokensRange, request.max_tokens()).ok());
  }
}

void CheckTgi(const std::string& body) {
  auto call = hippodrome::ParseTgi(body);
  if (!call.ok()) return;
  Require(!call->inputs.empty() && call->candidates >= 1);
  CheckNumbers(call->request);
  if (hippodrome::MakeStreamed(*call).ok()) Require(call->candidates == 1 && !call->prefill);
}

void CheckGenerate(const std::string& body) {
  const auto request = hippodrome::ParseKServeGenerate(body);
  if (!request.ok()) return;
  const auto generate = hippodrome::ReadGenerateParameters(*request);
  if (generate.ok()) CheckNumbers(*generate);
}

void CheckInfer(const std::string& body) {
  const std::string rest = body.substr(1);
  const auto json_bytes = static_cast<size_t>(static_cast<unsigned char>(body[0]));
  const auto whole = hippodrome::ParseInfer(rest, std::nullopt);
  if (whole.ok()) (void)hippodrome::ReadEncoderParameters(whole->request);
  (void)hippodrome::ParseInfer(rest, json_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'g':
      CheckGenerate(body);
      break;
    case 'i':
      CheckInfer(body);
      break;
    case 'r':
      (void)hippodrome::ParseRerank(body);
      break;
    case 's':
      (void)hippodrome::ParseSimilarity(body);
      break;
    case 'k':
      (void)hippodrome::ParseTeiTokenize(body);
      break;
    case 'd':
      (void)hippodrome::ParseTeiDecode(body);
      break;
    case 'a':
      (void)hippodrome::ParseEmbedAll(body);
      break;
    default:
      CheckTgi(body);
  }
  return 0;
}
