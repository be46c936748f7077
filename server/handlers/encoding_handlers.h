// What the server does with encoders, without a transport: validate, lay out, hand over.
#ifndef HIPPODROME_SERVER_HANDLERS_ENCODING_HANDLERS_H_
#define HIPPODROME_SERVER_HANDLERS_ENCODING_HANDLERS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "hippodrome/v1/encoding.pb.h"
#include "hippodrome/v1/models.pb.h"
#include "server/handlers/model_list.h"
#include "server/handlers/pending_answer.h"
#include "server/metrics/metrics.h"
#include "server/options.h"

namespace hippodrome {

// A call that was accepted. Its answer must be destroyed before the handlers.
template <typename Response>
using Answer = absl::StatusOr<std::unique_ptr<PendingAnswer<Response>>>;

// An empty model name means the first encoder with the right head. Errors are those of
// encoding.proto: before the call runs, or from PendingAnswer::Take(). Thread-safe.
class EncodingHandlers {
 public:
  // `models` must outlive the handlers.
  EncodingHandlers(const ModelList& models, const RequestLimits& limits)
      : models_(models), limits_(limits) {}

  Answer<v1::ClassifyResponse> Classify(const v1::ClassifyRequest& request, const Caller& caller);
  Answer<v1::TagTokensResponse> TagTokens(const v1::TagTokensRequest& request,
                                          const Caller& caller);
  Answer<v1::FillMaskResponse> FillMask(const v1::FillMaskRequest& request, const Caller& caller);
  Answer<v1::AnswerQuestionResponse> AnswerQuestion(const v1::AnswerQuestionRequest& request,
                                                    const Caller& caller);
  Answer<v1::EmbedResponse> Embed(const v1::EmbedRequest& request, const Caller& caller);

  // Of that encoder; an empty name means the first one.
  absl::StatusOr<v1::Model> GetModel(const std::string& name) const;

 private:
  const ModelList& models_;
  const RequestLimits limits_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_ENCODING_HANDLERS_H_
