// The work behind a call that generates from one prompt, for protocols other than OpenAI's: one
// answer, or several of which the format chooses.
#ifndef HIPPODROME_SERVER_HTTP_GENERATION_WORK_H_
#define HIPPODROME_SERVER_HTTP_GENERATION_WORK_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "server/batching/generation_batcher.h"
#include "server/http/http_types.h"

namespace hippodrome {

// What a protocol makes of the updates of a generation.
class GenerationFormat {
 public:
  virtual ~GenerationFormat() = default;

  // Each update of each generation once, in order. Of a streamed answer, appends its events to
  // `response.body`.
  virtual void Add(size_t generation, const StreamUpdate& update, HttpResponse& response) = 0;
  // After the last update of the last generation: completes a response that is not streamed.
  virtual void Complete(HttpResponse& response) = 0;
};

// "data: DATA" and an empty line.
std::string ServerSentEvent(const std::string& data);

// The reply to `request` that `format` makes of `generations`, at least one. `model` is for
// the record of the call.
HttpReply GenerationReply(const HttpRequest& request,
                          std::vector<std::unique_ptr<Generation>> generations,
                          std::unique_ptr<GenerationFormat> format, bool streamed,
                          std::string model);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_GENERATION_WORK_H_
