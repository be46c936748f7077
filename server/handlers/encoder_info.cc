#include "server/handlers/encoder_info.h"

namespace hippodrome {

const char* HeadName(EncoderHead head) {
  switch (head) {
    case EncoderHead::kNone:
      return "none";
    case EncoderHead::kMaskedLm:
      return "masked_lm";
    case EncoderHead::kSequenceClassification:
      return "sequence_classification";
    case EncoderHead::kMultipleChoice:
      return "multiple_choice";
    case EncoderHead::kTokenClassification:
      return "token_classification";
    case EncoderHead::kQuestionAnswering:
      return "question_answering";
  }
  return "none";
}

void DescribeEncoder(const EncoderEngine& engine, v1::Model& info) {
  const BigsConfig& config = engine.config();
  info.set_architecture("bigs");
  info.set_vocab_size(config.vocab_size);
  info.set_max_positions(engine.max_tokens());
  info.set_head(HeadName(config.head));
  if (config.head == EncoderHead::kSequenceClassification ||
      config.head == EncoderHead::kTokenClassification) {
    info.mutable_labels()->Assign(config.labels.begin(), config.labels.end());
  }
  info.set_embedding_size(config.hidden_size);
  const bool pads = engine.PaddedLength(1) == engine.max_tokens();
  info.set_pad_to(pads ? engine.max_tokens() : 0);
  info.set_max_batch_tokens(engine.max_batch_tokens());
}

}  // namespace hippodrome
