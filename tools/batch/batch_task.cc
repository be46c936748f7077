#include "tools/batch/batch_task.h"

#include <algorithm>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "engine/base/xxh3.h"
#include "server/guarded.h"
#include "server/handlers/encoder_info.h"
#include "server/json/json_encoding_requests.h"
#include "server/json/json_encoding_responses.h"
#include "server/json/json_fields.h"
#include "server/json/json_requests.h"
#include "server/json/json_responses.h"
#include "server/routes/completion_work.h"
#include "tools/batch/score_json.h"
#include "tools/command_line/help.h"

namespace hippodrome {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Work = absl::StatusOr<std::unique_ptr<LineWork>>;

// The answer of an encoder, which becomes finish(answer).
template <typename Response, typename Finish>
class EncodedLine : public LineWork {
 public:
  EncodedLine(std::unique_ptr<PendingAnswer<Response>> answer, Finish finish)
      : answer_(std::move(answer)), finish_(std::move(finish)) {}

  void OnReady(std::function<void()> wake) override { answer_->OnReady(std::move(wake)); }
  std::optional<absl::StatusOr<LineAnswer>> Take() override {
    const std::optional<absl::StatusOr<Response>> answer = answer_->Take();
    if (!answer) return std::nullopt;
    if (!answer->ok()) return answer->status();
    return finish_(**answer);
  }

 private:
  std::unique_ptr<PendingAnswer<Response>> answer_;
  const Finish finish_;
};

template <typename Response, typename Finish>
Work NewEncodedLine(Answer<Response> answer, Finish finish) {
  if (!answer.ok()) return answer.status();
  return std::make_unique<EncodedLine<Response, Finish>>(*std::move(answer), std::move(finish));
}

// The work behind a line whose answer is body(call, answer).
template <typename Call, typename Request, typename Response>
Work Encode(absl::StatusOr<Call> call, EncodingHandlers& handlers,
            Answer<Response> (EncodingHandlers::*handle)(const Request&, const Caller&),
            std::string (*body)(const Call&, const Response&)) {
  if (!call.ok()) return call.status();
  Answer<Response> answer = (handlers.*handle)(call->request, Caller());
  return NewEncodedLine(std::move(answer),
                        [body, call = *std::move(call)](const Response& response) {
                          return LineAnswer{.json = body(call, response), .row = {}};
                        });
}

// What /v1/completions answers, without what differs from one call to the next.
std::string LastingCompletion(const std::string& body) {
  OrderedJson json = OrderedJson::parse(body);
  for (const char* name : {"id", "object", "created", "model"}) json.erase(name);
  json["usage"].erase("prompt_tokens_details");
  return json.dump();
}

class CompletionLine : public LineWork {
 public:
  explicit CompletionLine(std::unique_ptr<HttpWork> work) : work_(std::move(work)) {}

  void OnReady(std::function<void()> wake) override { work_->OnUpdate(std::move(wake)); }
  std::optional<absl::StatusOr<LineAnswer>> Take() override {
    if (!work_->Advance(response_)) return std::nullopt;
    if (response_.status == 200) {
      return LineAnswer{.json = LastingCompletion(response_.body), .row = {}};
    }
    return ErrorOf(response_);
  }

 private:
  // The work is HTTP's, which has lost the status but for what its body says.
  static absl::Status ErrorOf(const HttpResponse& response) {
    const std::string message = Json::parse(response.body)["error"]["message"];
    const bool refused = response.status == 503 || response.status == 429;
    return refused ? Unavailable(message) : Internal(message);
  }

  std::unique_ptr<HttpWork> work_;
  HttpResponse response_;
};

class ScoreLine : public LineWork {
 public:
  ScoreLine(std::unique_ptr<PendingScore> score, bool per_token)
      : score_(std::move(score)), per_token_(per_token) {}

  void OnReady(std::function<void()> wake) override { score_->OnReady(wake); }
  std::optional<absl::StatusOr<LineAnswer>> Take() override {
    const std::optional<absl::StatusOr<v1::ScoreResponse>> answer = score_->Take();
    if (!answer) return std::nullopt;
    if (!answer->ok()) return answer->status();
    return LineAnswer{.json = ScoreBody(**answer, per_token_), .row = {}};
  }

 private:
  std::unique_ptr<PendingScore> score_;
  const bool per_token_;
};

// The heads that answer a task of encoders; none: any encoder does.
std::vector<EncoderHead> HeadsFor(BatchTask task) {
  switch (task) {
    case BatchTask::kClassify:
      return {EncoderHead::kSequenceClassification, EncoderHead::kMultipleChoice};
    case BatchTask::kFillMask:
      return {EncoderHead::kMaskedLm};
    case BatchTask::kTag:
      return {EncoderHead::kTokenClassification};
    case BatchTask::kAnswer:
      return {EncoderHead::kQuestionAnswering};
    default:
      return {};
  }
}

absl::Status CheckModel(const ServedModel& model, BatchTask task) {
  const std::string& head = model.info().head();  // empty: a decoder
  if (task == BatchTask::kGenerate || task == BatchTask::kScore) {
    if (head.empty()) return absl::OkStatus();
    return FailedPrecondition("the model is an encoder, and this task needs a decoder");
  }
  if (head.empty()) {
    return FailedPrecondition("the model is a decoder, and this task needs an encoder");
  }
  const std::vector<EncoderHead> heads = HeadsFor(task);
  const auto is = [&](EncoderHead wanted) { return head == HeadName(wanted); };
  if (heads.empty() || std::any_of(heads.begin(), heads.end(), is)) return absl::OkStatus();
  return FailedPrecondition("the model's head is " + head + ", and this task needs " +
                            HeadName(heads.front()));
}

}  // namespace

BatchTask ParseBatchTask(const std::string& name) {
  const std::vector<std::string> names = Alternatives(kBatchTasks);
  return static_cast<BatchTask>(std::find(names.begin(), names.end(), name) - names.begin());
}

absl::StatusOr<LineAnswerer> LineAnswerer::Make(Handlers& handlers, BatchTaskOptions options) {
  HIPPODROME_RETURN_IF_ERROR(CheckModel(*handlers.models().all()->front(), options.task));
  return LineAnswerer(handlers, std::move(options));
}

void LineAnswerer::AddDefaults(const std::string& line, Json& body) const {
  const Json* parameters = Find(body, "parameters");
  const bool nested = parameters != nullptr && parameters->is_object();
  const Json inner = nested ? *parameters : Json::object();
  for (const auto& [name, value] : options_.defaults.items()) {
    if (!inner.contains(name)) body.emplace(name, value);
  }
  if (options_.task != BatchTask::kGenerate || body.contains("seed")) return;
  Xxh3 checksum;
  checksum.Add(std::to_string(options_.seed) + "\n" + line);
  body["seed"] = std::stoull(checksum.Hex().substr(0, 16), nullptr, 16);
}

BegunLine LineAnswerer::Begin(const std::string& line) const {
  absl::StatusOr<Json> body = ParseObject(line, "the line");
  if (!body.ok()) return {"", body.status()};
  BegunLine begun{"", nullptr};
  if (const auto id = body->find("id"); id != body->end()) {
    if (!id->is_string() && !id->is_number()) {
      return {"", WrongType("id", "a string or a number", *id)};
    }
    begun.id = id->dump();
    body->erase(id);
  }
  AddDefaults(line, *body);
  begun.work = Guarded([&] { return BeginTask(body->dump()); });
  return begun;
}

Work LineAnswerer::BeginTask(const std::string& body) const {
  EncodingHandlers& encoding = handlers_.encoding();
  switch (options_.task) {
    case BatchTask::kGenerate:
      return Generate(body);
    case BatchTask::kScore:
      return Score(body);
    case BatchTask::kEmbed:
      return Embed(body);
    case BatchTask::kFillMask:
      return Encode(ParseFillMask(body), encoding, &EncodingHandlers::FillMask, FillMaskBody);
    case BatchTask::kTag:
      return Encode(ParseTokenClassification(body), encoding, &EncodingHandlers::TagTokens,
                    TokenClassificationBody);
    case BatchTask::kAnswer:
      return Encode(ParseQuestionAnswering(body), encoding, &EncodingHandlers::AnswerQuestion,
                    QuestionAnsweringBody);
    default:
      return Encode(ParsePredict(body), encoding, &EncodingHandlers::Classify, PredictBody);
  }
}

Work LineAnswerer::Generate(const std::string& body) const {
  HIPPODROME_ASSIGN_OR_RETURN(CompletionCall call, ParseCompletion(body, handlers_.limits()));
  if (call.stream) return FieldError("stream", "a job's lines are whole answers");
  if (call.requests.front().return_state() == v1::RETURN_STATE_HANDLE) {
    return FieldError("return_state", "a handle would end with the job: use \"inline\"");
  }
  HIPPODROME_ASSIGN_OR_RETURN(CompletionGroup made,
                              handlers_.Complete(call.requests, call.candidates, Caller()));
  return std::make_unique<CompletionLine>(NewCompletionWork(std::move(call), std::move(made)));
}

Work LineAnswerer::Score(const std::string& body) const {
  HIPPODROME_ASSIGN_OR_RETURN(const v1::ScoreRequest request, ParseScore(body));
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<PendingScore> score,
                              handlers_.Score(request, Caller()));
  return std::make_unique<ScoreLine>(std::move(score), request.per_token());
}

Work LineAnswerer::Embed(const std::string& body) const {
  HIPPODROME_ASSIGN_OR_RETURN(const EmbedCall call, ParseEmbed(body));
  if (options_.rows && call.request.inputs_size() != 1) {
    return FieldError("inputs", "there are " + std::to_string(call.request.inputs_size()) +
                                    ", expected one: each line is a row of the output");
  }
  Answer<v1::EmbedResponse> answer = handlers_.encoding().Embed(call.request, Caller());
  return NewEncodedLine(std::move(answer), [rows = options_.rows](const v1::EmbedResponse& answer) {
    if (!rows) return LineAnswer{.json = EmbedBody(answer), .row = {}};
    const auto& values = answer.embeddings(0).values();
    return LineAnswer{.json = "", .row = {values.begin(), values.end()}};
  });
}

}  // namespace hippodrome
