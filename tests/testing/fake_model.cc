#include "tests/testing/fake_model.h"

#include <memory>
#include <utility>

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
  if (with_tokenizer) parts.tokenizer = NewByteTokenizer();
  parts.engine = std::move(fake);
  return parts;
}

}  // namespace hippodrome
