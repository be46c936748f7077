// The work behind a call that generates from one prompt, for protocols other than OpenAI's.
#ifndef HIPPODROME_SERVER_HTTP_GENERATION_WORK_H_
#define HIPPODROME_SERVER_HTTP_GENERATION_WORK_H_

#include <memory>
#include <string>

#include "server/batching/generation_batcher.h"
#include "server/http/http_types.h"
#include "server/metrics/metrics.h"

namespace hippodrome {

// What a protocol makes of the updates of a generation.
class GenerationFormat {
 public:
  virtual ~GenerationFormat() = default;

  // Each update once, in order. Of a streamed answer, appends its events to `response.body`; of
  // another one, completes `response` with the last update.
  virtual void Add(const StreamUpdate& update, HttpResponse& response) = 0;
};

// "data: DATA" and an empty line.
std::string ServerSentEvent(const std::string& data);

// The reply to `request` that `format` makes of `generation`. `model` is for `metrics`, which must
// outlive the reply's work.
HttpReply GenerationReply(const HttpRequest& request, std::unique_ptr<Generation> generation,
                          std::unique_ptr<GenerationFormat> format, bool streamed,
                          std::string model, Metrics& metrics);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_GENERATION_WORK_H_
