"""`python -m examples.answer_with_gemini`."""

import sys

from examples.answer_with_gemini.answer import main

sys.exit(main())
