// What all calls of encoders have in common. For encoding_handlers.cc and *_handler.cc alone.
#ifndef HIPPODROME_SERVER_HANDLERS_ENCODING_SUBMIT_H_
#define HIPPODROME_SERVER_HANDLERS_ENCODING_SUBMIT_H_

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/status.h"
#include "engine/tokenizer/encode_pair.h"
#include "server/handlers/encoding_handlers.h"
#include "server/handlers/served_model.h"

namespace hippodrome {

// Every token of a text, as EncoderRequest::rows.
std::vector<int32_t> AllRows(const EncodedText& text);

// Moves the tokens into a request, for `task`, that asks for `rows`.
EncoderRequest NewRequest(EncodedText text, EncoderTask task, std::vector<int32_t> rows = {});

int64_t CountTokens(const std::vector<EncoderRequest>& requests);

// kInternal where a value is not a number, which neither sorts nor has a form in JSON.
absl::Status CheckFinite(const std::vector<EncoderOutput>& outputs);

// Row `row` of an output.
inline std::span<const float> Row(const EncoderOutput& output, int64_t row) {
  return std::span(output.values).subspan(row * output.cols, output.cols);
}

// Queues `requests`, each of which passed CheckTokens() and asks for what the head gives; `finish`
// makes the response from their outputs, all but its usage.
template <typename Response>
Answer<Response> SubmitEncoding(
    ServedEncoder& model, std::vector<EncoderRequest> requests, const Caller& caller,
    std::function<Response(const std::vector<EncoderOutput>& outputs)> finish) {
  assert(std::all_of(requests.begin(), requests.end(), [&](const EncoderRequest& request) {
    return model.engine().Validate(request).ok();
  }));
  HIPPODROME_RETURN_IF_ERROR(caller.MayRun(model.info().name()));
  const int64_t tokens = CountTokens(requests);
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<Encoding> encoding,
                              model.Submit({std::move(requests), caller}));
  auto take = [finish = std::move(finish),
               tokens](const std::vector<EncoderOutput>& outputs) -> absl::StatusOr<Response> {
    HIPPODROME_RETURN_IF_ERROR(CheckFinite(outputs));
    Response response = finish(outputs);
    response.mutable_usage()->set_tokens(tokens);
    return response;
  };
  return std::make_unique<EncodedAnswer<Response>>(model.info().name(), std::move(encoding),
                                                   std::move(take));
}

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_ENCODING_SUBMIT_H_
