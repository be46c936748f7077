// The compiled part of Asio that speaks TLS, once.
#include <boost/asio/ssl/impl/src.hpp>
