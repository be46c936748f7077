// What the batcher asks of an encoder: the part of Encoder that it uses, as an interface.
#ifndef HIPPODROME_SERVER_BATCHING_ENCODER_ENGINE_H_
#define HIPPODROME_SERVER_BATCHING_ENCODER_ENGINE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "engine/config/bigs_config.h"
#include "engine/encoder.h"

namespace hippodrome {

// The contracts are those of Encoder. All but Run() read constants alone and may be called on any
// thread; Run() belongs to the batcher's loop thread.
class EncoderEngine {
 public:
  virtual ~EncoderEngine() = default;

  virtual const BigsConfig& config() const = 0;
  virtual int64_t max_tokens() const = 0;
  virtual int64_t PaddedLength(int64_t tokens) const = 0;
  virtual int64_t max_batch_tokens() const = 0;
  virtual absl::Status Validate(const EncoderRequest& request) const = 0;

  virtual std::vector<EncoderOutput> Run(std::span<const EncoderRequest* const> requests) = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_ENCODER_ENGINE_H_
