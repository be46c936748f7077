// Any body is a call of an encoder or an error. The first byte chooses the route.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "server/json/json_encoding_requests.h"

namespace {

// An answer that is no list is made from one result.
template <typename Call>
void Check(const absl::StatusOr<Call>& call, bool Call::* list) {
  if (call.ok() && !((*call).*list) && call->request.inputs_size() > 1) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'e':
      (void)hippodrome::ParseEmbed(body);
      break;
    case 'o':
      (void)hippodrome::ParseEmbeddings(body);
      break;
    case 'f':
      Check(hippodrome::ParseFillMask(body), &hippodrome::FillMaskCall::batch);
      break;
    case 't':
      Check(hippodrome::ParseTokenClassification(body),
            &hippodrome::TokenClassificationCall::batch);
      break;
    case 'q':
      (void)hippodrome::ParseQuestionAnswering(body);
      break;
    default:
      Check(hippodrome::ParsePredict(body), &hippodrome::PredictCall::nested);
  }
  return 0;
}
