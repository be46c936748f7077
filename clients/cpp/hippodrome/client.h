// A client over gRPC that sends again what may be sent again (docs/replicas.md, "What clients may
// send again"), over the messages and stubs that protoc makes of proto/hippodrome/v1/*.proto:
//
//   hippodrome::client::Client client("127.0.0.1:50051");
//   hippodrome::v1::GenerateRequest request;
//   request.set_text("It was a dark night, and");
//   request.set_seed(1);
//   auto generation = client.Generate(request);
//   hippodrome::v1::GenerateResponse response;
//   while (generation->Read(&response)) std::cout << response.text() << std::flush;
//   if (grpc::Status status = generation->Finish(); !status.ok()) ...
//
// Needs C++17 and grpc++ alone.
#ifndef HIPPODROME_CLIENTS_CPP_HIPPODROME_CLIENT_H_
#define HIPPODROME_CLIENTS_CPP_HIPPODROME_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hippodrome/v1/encoding.grpc.pb.h"
#include "hippodrome/v1/generation.grpc.pb.h"
#include "hippodrome/v1/models.grpc.pb.h"
#include "hippodrome/v1/states.grpc.pb.h"

namespace hippodrome::client {

struct Options {
  std::string api_key;  // goes with each call; empty: none
  bool tls = false;
  std::string ca_file;  // with tls: the authorities, as PEM; empty: those that gRPC finds
  // That a call may take with all of its attempts; 0: as long as it takes. Longer than the longest
  // answer.
  std::chrono::milliseconds deadline{0};
  // For so long without anything new, a call is sent again.
  std::chrono::milliseconds retry_time{60000};
};

namespace internal {

using Clock = std::chrono::steady_clock;

// When one call is sent again, and until when. Not thread-safe.
class Patience {
 public:
  explicit Patience(const Options& options) : retry_time_(std::min(options.retry_time, kForEver)) {
    if (options.deadline.count() > 0) {
      deadline_ = Clock::now() + std::min(options.deadline, kForEver);
    }
    Progressed();
  }

  // Something new has come.
  void Progressed() {
    end_ = Clock::now() + retry_time_;
    longest_pause_ = kFirstPause;
  }

  // How long to wait before the next attempt. Nothing: it would fail as well, or come too late.
  std::optional<Clock::duration> PauseAfter(const grpc::Status& status,
                                            const grpc::ClientContext& context) {
    if (!MayBeSentAgain(status.error_code())) return std::nullopt;
    std::uniform_real_distribution<double> jitter(0, longest_pause_);
    const std::chrono::duration<double> pause(std::max(jitter(random_), RetryAfter(context)));
    longest_pause_ = std::min(2 * longest_pause_, kLongestPause);
    const auto wait = std::chrono::duration_cast<Clock::duration>(pause);
    const Clock::time_point next = Clock::now() + wait;
    if (next > end_ || (deadline_ && next >= *deadline_)) return std::nullopt;
    return wait;
  }

  const std::optional<Clock::time_point>& deadline() const { return deadline_; }

 private:
  // Seconds.
  static constexpr double kFirstPause = 0.1;
  static constexpr double kLongestPause = 5;
  static constexpr double kLongestRetryAfter = 1e6;
  // What clocks can add: 100 years.
  static constexpr std::chrono::milliseconds kForEver = std::chrono::hours(24 * 36500);

  static bool MayBeSentAgain(grpc::StatusCode code) {
    switch (code) {
      case grpc::StatusCode::RESOURCE_EXHAUSTED:
      case grpc::StatusCode::UNAVAILABLE:
      // What is made of a call that a balancer broke off. A server's own error comes again.
      case grpc::StatusCode::INTERNAL:
      case grpc::StatusCode::UNKNOWN:
      case grpc::StatusCode::CANCELLED:
        return true;
      default:
        return false;
    }
  }

  // Of a call that has ended.
  static double RetryAfter(const grpc::ClientContext& context) {
    const auto& metadata = context.GetServerTrailingMetadata();
    const auto found = metadata.find("retry-after");
    if (found == metadata.end()) return 0;
    const std::string text(found->second.data(), found->second.size());
    const double seconds = std::strtod(text.c_str(), nullptr);
    return seconds > 0 ? std::min(seconds, kLongestRetryAfter) : 0;  // no number is no wait
  }

  const Clock::duration retry_time_;
  std::optional<Clock::time_point> deadline_;
  Clock::time_point end_;
  double longest_pause_ = kFirstPause;
  std::minstd_rand random_{std::random_device()()};
};

// What calls go through. Thread-safe.
class Connection {
 public:
  using Channel = std::shared_ptr<grpc::ChannelInterface>;

  Connection(const Channel& channel, Options options)
      : options_(std::move(options)),
        encoding_(v1::Encoding::NewStub(channel)),
        generation_(v1::Generation::NewStub(channel)),
        models_(v1::Models::NewStub(channel)),
        states_(v1::States::NewStub(channel)) {
    // gRPC ends the process where metadata are not printable.
    const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
    if (!std::all_of(options_.api_key.begin(), options_.api_key.end(), printable)) {
      fault_ = {grpc::StatusCode::INVALID_ARGUMENT,
                "the API key has a character that is not printable, as the end of a line"};
    }
  }

  static std::shared_ptr<Connection> Open(const std::string& address, const Options& options) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // one of both
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    arguments.SetMaxReceiveMessageSize(-1);  // a state may be large
    grpc::SslCredentialsOptions authorities;
    bool read = true;
    if (options.tls && !options.ca_file.empty()) {
      std::ifstream file(options.ca_file, std::ios::binary);
      authorities.pem_root_certs.assign(std::istreambuf_iterator<char>(file), {});
      read = file && !authorities.pem_root_certs.empty();
    }
    auto connection = std::make_shared<Connection>(
        grpc::CreateCustomChannel(
            address,
            options.tls ? grpc::SslCredentials(authorities) : grpc::InsecureChannelCredentials(),
            arguments),
        options);
    if (!read) {
      connection->fault_ = {grpc::StatusCode::INVALID_ARGUMENT,
                            "cannot read the authorities of " + options.ca_file};
    }
    return connection;
  }

  // Why no call can be made.
  const grpc::Status& fault() const { return fault_; }
  const Options& options() const { return options_; }
  v1::Encoding::Stub& encoding() const { return *encoding_; }
  v1::Generation::Stub& generation() const { return *generation_; }
  v1::Models::Stub& models() const { return *models_; }
  v1::States::Stub& states() const { return *states_; }

  void Prepare(const Patience& patience, grpc::ClientContext* context) const {
    if (!options_.api_key.empty()) {
      context->AddMetadata("authorization", "Bearer " + options_.api_key);
    }
    if (const auto& deadline = patience.deadline()) {
      using System = std::chrono::system_clock;  // gRPC's
      context->set_deadline(System::now() +
                            std::chrono::duration_cast<System::duration>(*deadline - Clock::now()));
    }
  }

  using Attempt = std::function<grpc::Status(grpc::ClientContext*)>;
  // Makes attempts until one ends in something that does not pass.
  grpc::Status Repeat(const Attempt& attempt) const {
    Patience patience(options_);
    return Repeat(patience, attempt);
  }
  grpc::Status Repeat(Patience& patience, const Attempt& attempt) const {
    while (fault_.ok()) {
      grpc::ClientContext context;
      Prepare(patience, &context);
      grpc::Status status = attempt(&context);
      if (status.ok()) return status;
      const auto pause = patience.PauseAfter(status, context);
      if (!pause) return status;
      std::this_thread::sleep_for(*pause);
    }
    return fault_;
  }
  // `method`: of a stub, with one answer.
  template <typename Service, typename Request, typename Response>
  grpc::Status Call(Service& service,
                    grpc::Status (Service::*method)(grpc::ClientContext*, const Request&,
                                                    Response*),
                    const Request& request, Response* response) const {
    return Repeat([&](grpc::ClientContext* context) {
      return (service.*method)(context, request, response);
    });
  }

 private:
  const Options options_;
  const std::unique_ptr<v1::Encoding::Stub> encoding_;
  const std::unique_ptr<v1::Generation::Stub> generation_;
  const std::unique_ptr<v1::Models::Stub> models_;
  const std::unique_ptr<v1::States::Stub> states_;
  grpc::Status fault_;
};

// What the caller has of a text, and which part of it a stream tells next: one that is sent again
// begins where its request does. The same request has the same answer.
class Had {
 public:
  // A stream begins, at the place of the last GoOn().
  void Begin() { at_ = base_; }
  // The next request goes on from here.
  void GoOn() { base_ = at_; }
  // Whether anything is here that a repeated request would make once more.
  bool Any() const { return base_.text < text_.size() || base_.tokens < tokens_.size(); }
  // Tokens before the place of the last GoOn().
  size_t tokens_before() const { return base_.tokens; }

  // Takes from a response what the caller has. False if the caller has something else.
  bool Drop(v1::GenerateResponse* response) {
    return DropText(response->mutable_text()) && DropTokens(response) && DropPromptScores(response);
  }
  // Whether the stream has come to where the caller is.
  bool Complete() const { return at_.text == text_.size() && at_.tokens == tokens_.size(); }

 private:
  struct Place {
    size_t text = 0;
    size_t tokens = 0;
  };

  bool DropText(std::string* text) {
    const size_t known = std::min(text->size(), text_.size() - at_.text);
    if (text_.compare(at_.text, known, *text, 0, known) != 0) return false;
    at_.text += text->size();
    text->erase(0, known);
    text_ += *text;
    return true;
  }

  bool DropTokens(v1::GenerateResponse* response) {
    auto* ids = response->mutable_token_ids();
    const auto size = static_cast<size_t>(ids->size());
    const size_t known = std::min(size, tokens_.size() - at_.tokens);
    const auto had = tokens_.begin() + static_cast<std::ptrdiff_t>(at_.tokens);
    if (!std::equal(had, had + static_cast<std::ptrdiff_t>(known), ids->begin())) return false;
    at_.tokens += size;
    ids->ExtractSubrange(0, static_cast<int>(known), nullptr);
    tokens_.insert(tokens_.end(), ids->begin(), ids->end());
    auto* scores = response->mutable_scores();
    scores->DeleteSubrange(0, std::min(static_cast<int>(known), scores->size()));
    return true;
  }

  bool DropPromptScores(v1::GenerateResponse* response) {
    if (prompt_scores_) response->clear_prompt_scores();
    prompt_scores_ = prompt_scores_ || response->prompt_scores_size() > 0;
    return true;
  }

  std::string text_;
  std::vector<int32_t> tokens_;
  bool prompt_scores_ = false;
  Place base_;
  Place at_;
};

}  // namespace internal

// A text that is being made. Of one thread, but for Cancel().
//
// A stream that broke off is sent again, and what was had of it is skipped. So there must be a
// seed, temperature 0, or a state to go on from; else its error ends the text, unless nothing had
// come. Where a server stops, the text goes on from the state that it handed over: as one answer,
// whose usage counts all of it.
class Generation {
 public:
  ~Generation() { Cancel(); }
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // Waits for the next response. False at the end.
  bool Read(v1::GenerateResponse* response) {
    while (!ended_) {
      if (reader_ == nullptr) {
        Begin();
      } else if (!reader_->Read(response)) {
        Broke(reader_->Finish());
      } else if (Take(response)) {
        return true;
      }
    }
    return false;
  }
  // How it ended; what was not read is dropped. The errors are those of generation.proto; those
  // that may pass came for Options::retry_time. DATA_LOSS: the answer to the repeated request was
  // another one.
  grpc::Status Finish() {
    for (v1::GenerateResponse dropped; Read(&dropped);) continue;
    return status_;
  }
  // Gives up, from any thread. Read() ends soon, and Finish() says CANCELLED if there was more.
  void Cancel() {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (context_ != nullptr) context_->TryCancel();
    wake_.notify_all();
  }

 private:
  friend class Client;
  Generation(std::shared_ptr<const internal::Connection> connection,
             const v1::GenerateRequest& request)
      : connection_(std::move(connection)),
        patience_(connection_->options()),
        request_(request),
        max_tokens_(request.has_max_tokens() ? request.max_tokens() : kDefaultMaxTokens) {
    if (!connection_->fault().ok()) End(connection_->fault());
  }

  static constexpr int64_t kDefaultMaxTokens = 16;  // of generation.proto

  void End(const grpc::Status& status) {
    status_ = status;
    ended_ = true;
  }

  void Begin() {
    const std::lock_guard lock(mutex_);
    if (cancelled_) return End(grpc::Status::CANCELLED);
    context_ = std::make_unique<grpc::ClientContext>();
    connection_->Prepare(patience_, context_.get());
    had_.Begin();
    reader_ = connection_->generation().Generate(context_.get(), request_);
  }

  // Whether there is something for the caller.
  bool Take(v1::GenerateResponse* response) {
    if (!had_.Drop(response)) return Differ();
    const v1::FinishReason reason = response->finish_reason();
    if (reason == v1::FINISH_REASON_MIGRATED) return Migrate(response);
    complete_ = reason != v1::FINISH_REASON_UNSPECIFIED;
    if (complete_ && !had_.Complete()) return Differ();
    if (complete_) CountAll(response->mutable_usage());
    return Tell(*response);
  }

  bool Tell(const v1::GenerateResponse& response) {
    const bool fresh = complete_ || response.token_ids_size() > 0 || !response.text().empty() ||
                       response.prompt_scores_size() > 0;
    if (fresh) patience_.Progressed();
    return fresh;
  }

  bool Differ() {
    complete_ = false;
    Reset();
    End({grpc::StatusCode::DATA_LOSS,
         "the stream broke off, and the answer to the same request is another one"});
    return false;
  }

  // The answer is not whole: the next request goes on from its state.
  bool Migrate(v1::GenerateResponse* response) {
    if (!before_) before_ = response->usage();
    had_.GoOn();
    Reset();
    patience_.Progressed();
    const grpc::Status status = GoOnFrom(response->state(), response->usage());
    if (!status.ok()) End(status);
    response->clear_finish_reason();
    response->clear_usage();
    response->clear_state();
    return Tell(*response);
  }

  grpc::Status GoOnFrom(const v1::State& state, const v1::Usage& usage) {
    const int64_t left = std::max<int64_t>(usage.prompt_tokens() - state.position(), 0);
    if (left > 0 && request_.has_text()) {
      v1::TokenizeRequest tokenize;
      tokenize.set_model(request_.model());
      tokenize.set_text(request_.text());
      v1::TokenizeResponse tokens;
      const grpc::Status status = connection_->Repeat(patience_, [&](grpc::ClientContext* context) {
        return connection_->generation().Tokenize(context, tokenize, &tokens);
      });
      if (!status.ok()) return status;
      request_.mutable_token_ids()->mutable_ids()->Swap(tokens.mutable_token_ids());
    }
    if (left > request_.token_ids().ids_size()) {
      return {grpc::StatusCode::INTERNAL, "the state of the stopped server is behind the prompt"};
    }
    if (left > 0) {
      auto* ids = request_.mutable_token_ids()->mutable_ids();
      ids->ExtractSubrange(0, ids->size() - static_cast<int>(left), nullptr);
    } else {
      request_.clear_prompt();
    }
    request_.clear_position();
    request_.clear_cache_marks();  // of the whole prompt
    request_.set_state(state.handle());
    request_.set_max_tokens(max_tokens_ - static_cast<int64_t>(had_.tokens_before()));
    return grpc::Status::OK;
  }

  // Makes the usage of the last request that of the whole answer.
  void CountAll(v1::Usage* usage) const {
    if (!before_) return;
    usage->set_completion_tokens(usage->completion_tokens() +
                                 static_cast<int64_t>(had_.tokens_before()));
    usage->set_prompt_tokens(before_->prompt_tokens());
    *usage->mutable_prompt_tokens_details() = before_->prompt_tokens_details();
  }

  // The stream has ended.
  void Broke(const grpc::Status& status) {
    if (complete_ || status.ok()) return End(grpc::Status::OK);
    const bool same_again = request_.has_seed() || !request_.state().empty() ||
                            (request_.has_temperature() && request_.temperature() == 0);
    if (had_.Any() && !same_again) return End(status);
    const auto pause = patience_.PauseAfter(status, *context_);
    if (!pause) return End(status);
    Reset();
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, *pause, [this] { return cancelled_; });
    if (cancelled_) End(grpc::Status::CANCELLED);
  }

  // Nothing is under way any more.
  void Reset() {
    const std::lock_guard lock(mutex_);
    if (context_ != nullptr) context_->TryCancel();
    reader_.reset();
    context_.reset();
  }

  const std::shared_ptr<const internal::Connection> connection_;
  internal::Patience patience_;
  v1::GenerateRequest request_;  // or what is left of it
  const int64_t max_tokens_;
  internal::Had had_;
  std::optional<v1::Usage> before_;  // of the first server that stopped
  bool complete_ = false;            // the last response has come
  bool ended_ = false;
  grpc::Status status_;

  std::mutex mutex_;  // guards cancelled_, and context_ against Cancel()
  std::condition_variable wake_;
  bool cancelled_ = false;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> reader_;
};

// One server, or a balancer before several. Calls wait for their answers, and send again what may
// be sent again. Errors are those that the protos state; those that may pass came for
// Options::retry_time. Copies share their connection. Thread-safe.
class Client {
 public:
  // `address`: as gRPC takes it, "host:port". Where the file of authorities cannot be read, all
  // calls fail with INVALID_ARGUMENT.
  explicit Client(const std::string& address, const Options& options = {})
      : connection_(internal::Connection::Open(address, options)) {}
  // Over a channel of one's own, which should not repeat calls itself (GRPC_ARG_ENABLE_RETRIES 0).
  // Of `options`, tls and ca_file mean nothing here.
  explicit Client(const std::shared_ptr<grpc::ChannelInterface>& channel,
                  const Options& options = {})
      : connection_(std::make_shared<internal::Connection>(channel, options)) {}

  // Response by response. The Generation may outlive the client.
  std::unique_ptr<Generation> Generate(const v1::GenerateRequest& request) const {
    return std::unique_ptr<Generation>(new Generation(connection_, request));
  }
  // All responses as one; where an error is returned, what had come before it.
  grpc::Status Generate(const v1::GenerateRequest& request, v1::GenerateResponse* whole) const {
    const std::unique_ptr<Generation> generation = Generate(request);
    whole->Clear();
    std::string text;
    for (v1::GenerateResponse part; generation->Read(&part);) {
      text += part.text();
      whole->MergeFrom(part);
    }
    whole->set_text(text);
    return generation->Finish();
  }
  grpc::Status Score(const v1::ScoreRequest& request, v1::ScoreResponse* response) const {
    return connection_->Call(connection_->generation(), &v1::Generation::Stub::Score, request,
                             response);
  }
  grpc::Status Tokenize(const v1::TokenizeRequest& request, v1::TokenizeResponse* response) const {
    return connection_->Call(connection_->generation(), &v1::Generation::Stub::Tokenize, request,
                             response);
  }
  grpc::Status Detokenize(const v1::DetokenizeRequest& request,
                          v1::DetokenizeResponse* response) const {
    return connection_->Call(connection_->generation(), &v1::Generation::Stub::Detokenize, request,
                             response);
  }

  grpc::Status Classify(const v1::ClassifyRequest& request, v1::ClassifyResponse* response) const {
    return connection_->Call(connection_->encoding(), &v1::Encoding::Stub::Classify, request,
                             response);
  }
  grpc::Status TagTokens(const v1::TagTokensRequest& request,
                         v1::TagTokensResponse* response) const {
    return connection_->Call(connection_->encoding(), &v1::Encoding::Stub::TagTokens, request,
                             response);
  }
  grpc::Status FillMask(const v1::FillMaskRequest& request, v1::FillMaskResponse* response) const {
    return connection_->Call(connection_->encoding(), &v1::Encoding::Stub::FillMask, request,
                             response);
  }
  grpc::Status AnswerQuestion(const v1::AnswerQuestionRequest& request,
                              v1::AnswerQuestionResponse* response) const {
    return connection_->Call(connection_->encoding(), &v1::Encoding::Stub::AnswerQuestion, request,
                             response);
  }
  grpc::Status Embed(const v1::EmbedRequest& request, v1::EmbedResponse* response) const {
    return connection_->Call(connection_->encoding(), &v1::Encoding::Stub::Embed, request,
                             response);
  }

  grpc::Status ListModels(v1::ListModelsResponse* response) const {
    return connection_->Call(connection_->models(), &v1::Models::Stub::List,
                             v1::ListModelsRequest(), response);
  }
  grpc::Status GetModel(const v1::GetModelRequest& request, v1::Model* response) const {
    return connection_->Call(connection_->models(), &v1::Models::Stub::Get, request, response);
  }

  grpc::Status ListStates(v1::ListStatesResponse* response) const {
    return connection_->Call(connection_->states(), &v1::States::Stub::List,
                             v1::ListStatesRequest(), response);
  }
  // The file of a state.
  grpc::Status GetState(const v1::GetStateRequest& request, std::string* file) const {
    return connection_->Repeat([&](grpc::ClientContext* context) {
      file->clear();
      const auto reader = connection_->states().Get(context, request);
      for (v1::StateChunk chunk; reader->Read(&chunk);) file->append(chunk.data());
      return reader->Finish();
    });
  }
  // Keeps the file that is `request`'s data, of any size. Without a handle of the caller's, a call
  // that is sent again may leave a copy under another one, which expires.
  grpc::Status PutState(const v1::PutStateRequest& request, v1::State* state) const {
    return connection_->Repeat([&](grpc::ClientContext* context) {
      constexpr size_t kChunk = size_t{1} << 20;
      const auto writer = connection_->states().Put(context, state);
      v1::PutStateRequest part;
      part.set_handle(request.handle());
      if (request.has_state_ttl()) part.set_state_ttl(request.state_ttl());
      size_t at = 0;
      do {
        part.set_data(request.data().substr(at, kChunk));
        at += part.data().size();
        if (!writer->Write(part)) break;  // Finish() says why
        part.Clear();
      } while (at < request.data().size());
      writer->WritesDone();
      return writer->Finish();
    });
  }
  // A state that is not there is none that was forgotten by an earlier attempt: NOT_FOUND.
  grpc::Status DeleteState(const v1::DeleteStateRequest& request) const {
    v1::DeleteStateResponse response;
    return connection_->Call(connection_->states(), &v1::States::Stub::Delete, request, &response);
  }
  // A call that is sent again may leave copies that nobody knows of, which expire.
  grpc::Status ForkState(const v1::ForkStateRequest& request,
                         v1::ForkStateResponse* response) const {
    return connection_->Call(connection_->states(), &v1::States::Stub::Fork, request, response);
  }

 private:
  std::shared_ptr<const internal::Connection> connection_;
};

}  // namespace hippodrome::client

#endif  // HIPPODROME_CLIENTS_CPP_HIPPODROME_CLIENT_H_
