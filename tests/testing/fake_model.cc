#include "tests/testing/fake_model.h"

#include <utility>

#include "server/handlers/encoder_info.h"
#include "tests/testing/byte_tokenizer.h"

namespace hippodrome {

ModelParts NewFakeModel(const std::string& name, const FakeEngineOptions& options,
                        FakeEngine** engine, bool with_tokenizer) {
  auto fake = std::make_unique<FakeEngine>(options);
  if (engine != nullptr) *engine = fake.get();
  ModelParts parts;
  parts.info.set_name(name);
  parts.info.set_architecture("fake");
  parts.info.set_weights("f32");
  parts.info.set_vocab_size(options.vocab_size);
  parts.info.set_has_tokenizer(with_tokenizer);
  DecoderParts decoder;
  if (with_tokenizer) decoder.tokenizer = NewByteTokenizer();
  decoder.engine = std::move(fake);
  parts.family = std::move(decoder);
  return parts;
}

ModelParts NewFakeEncoderModel(const std::string& name, const FakeEncoderOptions& options,
                               FakeEncoder** engine, bool with_tokenizer) {
  auto fake = std::make_unique<FakeEncoder>(options);
  if (engine != nullptr) *engine = fake.get();
  ModelParts parts;
  DescribeEncoder(*fake, parts.info);
  parts.info.set_name(name);
  parts.info.set_architecture("fake");
  parts.info.set_weights("f32");
  parts.info.set_has_tokenizer(with_tokenizer);
  EncoderParts encoder;
  if (with_tokenizer) encoder.tokenizer = NewSmallWordPiece();
  encoder.engine = std::move(fake);
  parts.family = std::move(encoder);
  return parts;
}

std::unique_ptr<WordPieceTokenizer> NewSmallWordPiece() {
  std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (char c = 'a'; c <= 'z'; ++c) vocab += std::string(1, c) + "\n";
  for (char c = 'a'; c <= 'z'; ++c) vocab += std::string("##") + c + "\n";
  vocab += ".\n,\n?\n!\nthe\ncapital\nof\nis\nfrance\nparis\nlyon\n";
  return WordPieceTokenizer::Parse(vocab).value();
}

std::unique_ptr<ServedModel> NewServedModel(ModelParts parts, Metrics& metrics) {
  return NewServedModel(std::move(parts), BatcherOptions(), EncodingOptions(), metrics);
}

}  // namespace hippodrome
