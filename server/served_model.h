// A model with all that it takes to serve it.
#ifndef HIPPODROME_SERVER_SERVED_MODEL_H_
#define HIPPODROME_SERVER_SERVED_MODEL_H_

#include <memory>
#include <string>

#include "engine/tokenizer/bpe.h"
#include "hippodrome/v1/models.pb.h"
#include "server/generation_batcher.h"
#include "server/metrics.h"
#include "server/options.h"
#include "server/sequence_engine.h"

namespace hippodrome {

// What loading gives.
struct ModelParts {
  v1::Model info;
  std::string device;                       // the backend's name
  std::unique_ptr<BpeTokenizer> tokenizer;  // null: token ids only
  std::unique_ptr<SequenceEngine> engine;
};

// Runs from construction to destruction. Thread-safe.
class ServedModel {
 public:
  // `metrics` must outlive the model.
  ServedModel(ModelParts parts, const BatcherOptions& options, Metrics& metrics)
      : parts_(std::move(parts)),
        metrics_(metrics.registry(), parts_.info.name()),
        batcher_(*parts_.engine, parts_.tokenizer.get(), options, metrics_) {
    metrics.SetModelInfo(parts_.info);
  }

  const v1::Model& info() const { return parts_.info; }
  const BpeTokenizer* tokenizer() const { return parts_.tokenizer.get(); }
  GenerationBatcher& batcher() { return batcher_; }
  const GenerationBatcher& batcher() const { return batcher_; }

 private:
  ModelParts parts_;
  ModelMetrics metrics_;
  GenerationBatcher batcher_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_SERVED_MODEL_H_
