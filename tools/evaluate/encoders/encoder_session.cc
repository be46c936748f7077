#include "tools/evaluate/encoders/encoder_session.h"

#include <algorithm>
#include <numeric>

#include "engine/base/status.h"
#include "engine/model_directory.h"
#include "engine/open_backend.h"
#include "tools/command_line/progress.h"

namespace hippodrome {
namespace {

std::string Names(const std::vector<EncoderHead>& heads) {
  std::string names;
  for (const EncoderHead head : heads)
    names += (names.empty() ? "" : " or ") + std::string(Name(head));
  return names;
}

absl::StatusOr<EncoderSessionOptions> ReadOptions(const CommandLine& line) {
  EncoderSessionOptions options;
  HIPPODROME_ASSIGN_OR_RETURN(options.weights, line.Weights());
  HIPPODROME_ASSIGN_OR_RETURN(options.cpu, line.PlaceThreads());
  HIPPODROME_ASSIGN_OR_RETURN(options.device, line.Device());
  if (!line.Has("pad-to")) return options;
  HIPPODROME_ASSIGN_OR_RETURN(options.encoder.pad_to, line.Integer("pad-to", 0, 1 << 30));
  return options;
}

}  // namespace

absl::StatusOr<BigsConfig> ReadEncoderConfig(const std::string& directory,
                                             const std::vector<EncoderHead>& heads) {
  HIPPODROME_ASSIGN_OR_RETURN(const ModelFamily family, ReadModelFamily(directory));
  if (family != ModelFamily::kBigs) {
    return FailedPrecondition(directory + " holds a decoder, expected a " + Names(heads));
  }
  HIPPODROME_ASSIGN_OR_RETURN(BigsConfig config, ReadBigsConfig(directory));
  if (std::find(heads.begin(), heads.end(), config.head) != heads.end()) return config;
  return FailedPrecondition(directory + " holds a " + Name(config.head) + ", expected a " +
                            Names(heads));
}

absl::StatusOr<std::unique_ptr<EncoderSession>> EncoderSession::Open(
    const CommandLine& line, const std::vector<EncoderHead>& heads) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string directory, line.Required("model"));
  return Open(line, directory, heads);
}

absl::StatusOr<std::unique_ptr<EncoderSession>> EncoderSession::Open(
    const CommandLine& line, const std::string& directory, const std::vector<EncoderHead>& heads) {
  HIPPODROME_ASSIGN_OR_RETURN(const EncoderSessionOptions options, ReadOptions(line));
  return Open(options, directory, heads);
}

absl::StatusOr<std::unique_ptr<EncoderSession>> EncoderSession::Open(
    const EncoderSessionOptions& options, const std::string& directory,
    const std::vector<EncoderHead>& heads) {
  HIPPODROME_RETURN_IF_ERROR(ReadEncoderConfig(directory, heads).status());
  std::unique_ptr<EncoderSession> session(new EncoderSession);
  HIPPODROME_ASSIGN_OR_RETURN(session->backend_, OpenBackend(options.device, options.cpu));
  HIPPODROME_ASSIGN_OR_RETURN(LoadedEncoder loaded,
                              LoadEncoderDirectory(*session->backend_, directory, options.weights));
  if (loaded.tokenizer == nullptr) {
    return FailedPrecondition(directory + " has no vocab.txt, which text needs");
  }
  session->tokenizer_ = std::move(loaded.tokenizer);
  session->model_ = std::move(loaded.model);
  HIPPODROME_ASSIGN_OR_RETURN(
      session->encoder_, Encoder::Create(*session->backend_, *session->model_, options.encoder));
  return session;
}

EncodedText EncoderSession::Encode(std::string_view first, std::string_view second,
                                   bool pair) const {
  const std::vector<WordPiece> a = tokenizer_->Tokenize(first);
  const std::vector<WordPiece> b = pair ? tokenizer_->Tokenize(second) : std::vector<WordPiece>();
  return EncodePair(*tokenizer_, a, b, pair, max_tokens(), Truncation::kLongestFirst);
}

absl::Status EncoderSession::Run(const std::string& what, std::span<const EncoderRequest> requests,
                                 const OutputSink& sink) {
  std::vector<int64_t> tokens;
  for (const EncoderRequest& request : requests) {
    HIPPODROME_RETURN_IF_ERROR(encoder_->Validate(request));
    tokens.push_back(encoder_->PaddedLength(std::ssize(request.ids)));
  }
  Progress progress(what);
  int64_t done = 0;
  for (const auto& batch : BatchesOfOneLength(tokens, encoder_->max_batch_tokens())) {
    std::vector<const EncoderRequest*> members;
    for (const size_t input : batch) members.push_back(&requests[input]);
    const std::vector<EncoderOutput> outputs = encoder_->Run(members);
    for (size_t i = 0; i < batch.size(); ++i) sink(batch[i], outputs[i]);
    done += std::ssize(batch);
    progress.Update(done, std::ssize(requests));
  }
  return absl::OkStatus();
}

nlohmann::json EncoderSession::Description() const {
  nlohmann::json json = {{"weights", WeightsName(model_->linear_dtype())}};
  if (encoder_->PaddedLength(1) > 1) json["padded_to"] = encoder_->PaddedLength(1);
  return json;
}

std::vector<std::vector<size_t>> BatchesOfOneLength(std::span<const int64_t> tokens,
                                                    int64_t max_batch_tokens) {
  std::vector<size_t> order(tokens.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return tokens[a] < tokens[b]; });
  std::vector<std::vector<size_t>> batches;
  for (const size_t input : order) {
    const bool fits = !batches.empty() && tokens[batches.back()[0]] == tokens[input] &&
                      (std::ssize(batches.back()) + 1) * tokens[input] <= max_batch_tokens;
    if (!fits) batches.emplace_back();
    batches.back().push_back(input);
  }
  return batches;
}

}  // namespace hippodrome
