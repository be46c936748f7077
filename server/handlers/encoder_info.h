// What Models.Get says of an encoder.
#ifndef HIPPODROME_SERVER_HANDLERS_ENCODER_INFO_H_
#define HIPPODROME_SERVER_HANDLERS_ENCODER_INFO_H_

#include "engine/config/bigs_config.h"
#include "hippodrome/v1/models.pb.h"
#include "server/batching/encoder_engine.h"

namespace hippodrome {

// "masked_lm", "sequence_classification", ..., "none".
const char* HeadName(EncoderHead head);

// Sets what follows from the engine: sizes, head, labels, pad_to.
void DescribeEncoder(const EncoderEngine& engine, v1::Model& info);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_ENCODER_INFO_H_
