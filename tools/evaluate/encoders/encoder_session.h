// The encoder that is evaluated.
#ifndef HIPPODROME_TOOLS_EVALUATE_ENCODERS_ENCODER_SESSION_H_
#define HIPPODROME_TOOLS_EVALUATE_ENCODERS_ENCODER_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/encoder.h"
#include "engine/tokenizer/encode_pair.h"
#include "engine/tokenizer/wordpiece.h"
#include "tools/command_line/command_line.h"

namespace hippodrome {

// Receives the output of request `index`.
using OutputSink = std::function<void(size_t index, const EncoderOutput& output)>;

// How a model is run.
struct EncoderSessionOptions {
  std::optional<DType> weights;  // nothing: as LoadEncoderDirectory()
  DeviceChoice device = DeviceChoice::kAuto;
  CpuOptions cpu;
  EncoderOptions encoder;
};

// A model with its tokenizer. One thread.
class EncoderSession {
 public:
  // Opens --model with --weights, --device, --threads and --pad-to. Errors: of reading, and those
  // of ReadEncoderConfig().
  static absl::StatusOr<std::unique_ptr<EncoderSession>> Open(
      const CommandLine& line, const std::vector<EncoderHead>& heads);
  // The same for the model in `directory`.
  static absl::StatusOr<std::unique_ptr<EncoderSession>> Open(
      const CommandLine& line, const std::string& directory, const std::vector<EncoderHead>& heads);
  static absl::StatusOr<std::unique_ptr<EncoderSession>> Open(
      const EncoderSessionOptions& options, const std::string& directory,
      const std::vector<EncoderHead>& heads);

  const BigsConfig& config() const { return encoder_->config(); }
  const WordPieceTokenizer& tokenizer() const { return *tokenizer_; }
  int64_t max_tokens() const { return encoder_->max_tokens(); }

  // [CLS] first [SEP], or with `second` behind where `pair` says so; truncated, longest first, to
  // what the model takes.
  EncodedText Encode(std::string_view first, std::string_view second, bool pair) const;

  // Runs all requests in batches of one length, and passes their outputs on, not in order. `what`
  // is said beside the progress. Errors: kInvalidArgument for a request that is not valid.
  absl::Status Run(const std::string& what, std::span<const EncoderRequest> requests,
                   const OutputSink& sink);

  // What a report says of the model: "weights", and "padded_to" where inputs are padded.
  nlohmann::json Description() const;

 private:
  EncoderSession() = default;

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<WordPieceTokenizer> tokenizer_;
  std::unique_ptr<Bigs> model_;
  std::unique_ptr<Encoder> encoder_;
};

// The configuration of the encoder in `directory`. Errors: of reading, and kFailedPrecondition for
// a model of another family or with a head that is none of `heads`.
absl::StatusOr<BigsConfig> ReadEncoderConfig(const std::string& directory,
                                             const std::vector<EncoderHead>& heads);

// Every input once, as its place in `tokens`, in batches of one length, the shortest first, which
// together have at most `max_batch_tokens` tokens; one input may always be alone.
std::vector<std::vector<size_t>> BatchesOfOneLength(std::span<const int64_t> tokens,
                                                    int64_t max_batch_tokens);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_ENCODERS_ENCODER_SESSION_H_
