// A model with all that it takes to serve it.
#ifndef HIPPODROME_SERVER_HANDLERS_SERVED_MODEL_H_
#define HIPPODROME_SERVER_HANDLERS_SERVED_MODEL_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/tokenizer/bpe.h"
#include "engine/tokenizer/wordpiece.h"
#include "hippodrome/v1/models.pb.h"
#include "server/batching/encoder_engine.h"
#include "server/batching/encoding_batcher.h"
#include "server/batching/generation_batcher.h"
#include "server/batching/sequence_engine.h"
#include "server/handlers/tokenizer_info.h"
#include "server/metrics/encoder_metrics.h"
#include "server/metrics/metrics.h"
#include "server/options.h"

namespace hippodrome {

struct DecoderParts {
  std::unique_ptr<BpeTokenizer> tokenizer;  // null: token ids only
  std::unique_ptr<SequenceEngine> engine;
};

struct EncoderParts {
  std::unique_ptr<WordPieceTokenizer> tokenizer;  // null: token ids only
  std::unique_ptr<EncoderEngine> engine;
};

// Where a model came from.
struct ModelOrigin {
  std::string directory;
  std::string fingerprint;  // of its files, as FingerprintModel() gave it before they were read
};

// What loading gives.
struct ModelParts {
  v1::Model info;
  std::string device;           // the backend's name
  std::string device_obstacle;  // why it is not CUDA; empty where it is, or was not asked for
  std::variant<DecoderParts, EncoderParts> family;
  ModelOrigin origin;
};

class ServedDecoder;
class ServedEncoder;

// Runs from construction to destruction; every request to it holds it. Thread-safe.
class ServedModel : public std::enable_shared_from_this<ServedModel> {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~ServedModel() = default;

  const v1::Model& info() const { return info_; }
  const ModelOrigin& origin() const { return origin_; }
  // Before others have the model.
  void set_origin(ModelOrigin origin) { origin_ = std::move(origin); }

  // Null where the model is of the other kind.
  virtual ServedDecoder* decoder() { return nullptr; }
  virtual ServedEncoder* encoder() { return nullptr; }

  // kFailedPrecondition without a tokenizer. Of an encoder, `special` asks for [CLS] .. [SEP]; a
  // decoder has nothing to add, but a text that is the name of its special token and no more is
  // that token, because clients ask so for its id.
  virtual absl::StatusOr<std::vector<int32_t>> Tokenize(const std::string& text,
                                                        bool special) const = 0;
  virtual absl::StatusOr<TokenizerInfo> DescribeTokenizer() const = 0;
  // Bytes that are not UTF-8 become U+FFFD. Also kInvalidArgument for ids that do not exist.
  virtual absl::StatusOr<std::string> Detokenize(std::span<const int32_t> ids) const = 0;

  // As of the batchers.
  virtual void Close() = 0;
  virtual void Migrate() {}  // encoders' inputs are soon done
  virtual void Abort(const absl::Status& reason) = 0;
  virtual int64_t pending() const = 0;
  virtual Clock::time_point heartbeat() const = 0;
  // False once the model has computed a value that is not a number.
  virtual bool sound() const { return true; }
  // A loop that has not come by for so long hangs.
  virtual Clock::duration longest_turn() const = 0;

 protected:
  explicit ServedModel(v1::Model info) : info_(std::move(info)) {}

 private:
  const v1::Model info_;
  ModelOrigin origin_;
};

class ServedDecoder : public ServedModel {
 public:
  // `metrics` must outlive the model.
  ServedDecoder(v1::Model info, DecoderParts parts, const BatcherOptions& options,
                Metrics& metrics);

  // kFailedPrecondition if there is none.
  absl::StatusOr<const BpeTokenizer*> Tokenizer() const;
  // That a prompt was, for the metrics.
  void Tokenized(Api api, Clock::duration duration) const { metrics_.Tokenized(api, duration); }
  // As of the engine.
  const StateLayout& state_layout() const { return parts_.engine->state_layout(); }
  std::string arithmetic() const { return parts_.engine->arithmetic(); }
  // As of the batcher. What is returned keeps this model, where that is shared.
  absl::StatusOr<std::unique_ptr<Generation>> Submit(GenerationCall call) {
    return batcher_.Submit(std::move(call), weak_from_this().lock());
  }

  ServedDecoder* decoder() override { return this; }
  absl::StatusOr<std::vector<int32_t>> Tokenize(const std::string& text,
                                                bool special) const override;
  absl::StatusOr<TokenizerInfo> DescribeTokenizer() const override;
  absl::StatusOr<std::string> Detokenize(std::span<const int32_t> ids) const override;
  void Close() override { batcher_.Close(); }
  void Migrate() override { batcher_.Migrate(); }
  void Abort(const absl::Status& reason) override { batcher_.Abort(reason); }
  int64_t pending() const override { return batcher_.pending(); }
  Clock::time_point heartbeat() const override { return batcher_.heartbeat(); }
  bool sound() const override { return batcher_.sound(); }
  Clock::duration longest_turn() const override;

 private:
  const DecoderParts parts_;
  ModelMetrics metrics_;
  GenerationBatcher batcher_;
};

class ServedEncoder : public ServedModel {
 public:
  // `metrics` must outlive the model.
  ServedEncoder(v1::Model info, EncoderParts parts, const EncodingOptions& options,
                Metrics& metrics);

  // kFailedPrecondition if there is none.
  absl::StatusOr<const WordPieceTokenizer*> Tokenizer() const;
  const EncoderEngine& engine() const { return *parts_.engine; }
  // As of the batcher. What is returned keeps this model, where that is shared.
  absl::Status CheckSize(int64_t requests, int64_t tokens) const {
    return batcher_.CheckSize(requests, tokens);
  }
  absl::StatusOr<std::unique_ptr<Encoding>> Submit(EncodingCall call) {
    return batcher_.Submit(std::move(call), weak_from_this().lock());
  }

  ServedEncoder* encoder() override { return this; }
  absl::StatusOr<std::vector<int32_t>> Tokenize(const std::string& text,
                                                bool special) const override;
  absl::StatusOr<TokenizerInfo> DescribeTokenizer() const override;
  absl::StatusOr<std::string> Detokenize(std::span<const int32_t> ids) const override;
  void Close() override { batcher_.Close(); }
  void Abort(const absl::Status& reason) override { batcher_.Abort(reason); }
  int64_t pending() const override { return batcher_.pending(); }
  Clock::time_point heartbeat() const override { return batcher_.heartbeat(); }
  Clock::duration longest_turn() const override;

 private:
  const EncoderParts parts_;
  EncoderMetrics metrics_;
  EncodingBatcher batcher_;
};

// `metrics` must outlive the model.
std::unique_ptr<ServedModel> NewServedModel(ModelParts parts, const BatcherOptions& generation,
                                            const EncodingOptions& encoding, Metrics& metrics);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_SERVED_MODEL_H_
