// The work behind a call of /v1/completions.
#ifndef HIPPODROME_SERVER_HTTP_COMPLETION_WORK_H_
#define HIPPODROME_SERVER_HTTP_COMPLETION_WORK_H_

#include <memory>
#include <optional>

#include "server/handlers/handlers.h"
#include "server/http/http_types.h"
#include "server/json/json_requests.h"

namespace hippodrome {

// Answers `call` as one JSON body or as server-sent events; choices are numbered prompt by prompt.
// `made` is what Handlers::Complete() gave for its requests and candidates; `stamp` is as
// HttpRequest::stamp.
std::unique_ptr<HttpWork> NewCompletionWork(CompletionCall call, CompletionGroup made,
                                            const std::optional<AnswerStamp>& stamp = {});

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_COMPLETION_WORK_H_
