// SPDX-License-Identifier: GPL-2.0
#pragma once

// libexs has a licence of its own and is built by itself, so the class stands there
#include "../../libexs/src/descriptor.h"

using libexs::Descriptor;
