"""Small general knowledge for the demo model: tables, no code."""

# wordings of a question, answer
FACTS = [
    (["How many days are in a week?", "How many days does a week have?"],
     "A week has 7 days."),
    (["How many months are in a year?", "How many months does a year have?"],
     "A year has 12 months."),
    (["How many days are in a year?", "How many days does a year have?"],
     "A year has 365 days, and a leap year 366."),
    (["How many hours are in a day?", "How many hours does a day have?"],
     "A day has 24 hours."),
    (["How many minutes are in an hour?",
      "How many minutes does an hour have?"], "An hour has 60 minutes."),
    (["How many seconds are in a minute?",
      "How many seconds does a minute have?"], "A minute has 60 seconds."),
    (["How many legs does a spider have?", "How many legs has a spider?"],
     "A spider has 8 legs."),
    (["How many legs does a dog have?", "How many legs has a dog?"],
     "A dog has 4 legs."),
    (["How many legs does an insect have?", "How many legs has an ant?"],
     "An insect has 6 legs."),
    (["How many legs does a bird have?", "How many legs has a bird?"],
     "A bird has 2 legs."),
    (["How many arms does an octopus have?", "How many arms has an octopus?"],
     "An octopus has 8 arms."),
    (["How many sides does a triangle have?",
      "How many corners has a triangle?"], "A triangle has 3 sides."),
    (["How many sides does a square have?", "How many corners has a square?"],
     "A square has 4 sides."),
    (["How many sides does a hexagon have?"], "A hexagon has 6 sides."),
    (["How many fingers are on a hand?", "How many fingers does a hand have?"],
     "A hand has 5 fingers."),
    (["How many letters are in the alphabet?",
      "How many letters does the English alphabet have?"],
     "The English alphabet has 26 letters."),
    (["How many continents are there?"], "There are 7 continents."),
    (["How many planets are there?",
      "How many planets does the solar system have?"],
     "The solar system has 8 planets."),
    (["How many bits are in a byte?", "How many bits does a byte have?"],
     "A byte has 8 bits."),
    (["What is the largest planet?", "Which planet is the biggest?",
      "What is the biggest planet?"], "The largest planet is Jupiter."),
    (["What is the smallest planet?", "Which planet is the smallest?"],
     "The smallest planet is Mercury."),
    (["Which planet is closest to the sun?",
      "What planet is nearest to the sun?"],
     "Mercury is the planet closest to the sun."),
    (["What is the red planet?", "Which planet is red?",
      "Which planet is called the red planet?"], "Mars is the red planet."),
    (["What planet do we live on?", "Which planet do we live on?"],
     "We live on the Earth."),
    (["What is the largest ocean?", "Which ocean is the biggest?",
      "What is the biggest ocean?"], "The largest ocean is the Pacific."),
    (["What is the largest animal?", "Which animal is the biggest?",
      "What is the biggest animal?"],
     "The largest animal is the blue whale."),
    (["What is the tallest animal?", "Which animal is the tallest?"],
     "The tallest animal is the giraffe."),
    (["What is the fastest land animal?", "Which animal runs fastest?"],
     "The fastest land animal is the cheetah."),
    (["What is the highest mountain?", "Which mountain is the highest?",
      "What is the tallest mountain?"],
     "The highest mountain is Mount Everest."),
    (["What is the largest country?", "Which country is the biggest?"],
     "The largest country is Russia."),
    (["What is the smallest country?", "Which country is the smallest?"],
     "The smallest country is Vatican City."),
    (["What is water made of?", "What does water consist of?"],
     "Water is made of hydrogen and oxygen."),
    (["What is the chemical formula of water?", "What is the formula of "
      "water?"], "The formula of water is H2O."),
    (["At what temperature does water boil?", "When does water boil?",
      "What is the boiling point of water?"], "Water boils at 100 °C."),
    (["At what temperature does water freeze?", "When does water freeze?",
      "What is the freezing point of water?"], "Water freezes at 0 °C."),
    (["What do bees make?", "What is made by bees?"], "Bees make honey."),
    (["What do cows eat?", "What does a cow eat?"], "Cows eat grass."),
    (["What do cows give?", "What does a cow give?"], "Cows give milk."),
    (["Who wrote Romeo and Juliet?", "Who is the author of Romeo and Juliet?"],
     "William Shakespeare wrote Romeo and Juliet."),
    (["Who wrote Hamlet?", "Who is the author of Hamlet?"],
     "William Shakespeare wrote Hamlet."),
    (["Who painted the Mona Lisa?", "Who made the Mona Lisa?"],
     "Leonardo da Vinci painted the Mona Lisa."),
    (["Who was the first person on the moon?",
      "Who first walked on the moon?"],
     "Neil Armstrong was the first person on the moon."),
    (["Who was Ada Lovelace?", "Who is Ada Lovelace?"],
     "Ada Lovelace wrote the first computer program."),
    (["Who was Alan Turing?", "Who is Alan Turing?"],
     "Alan Turing was a founder of computer science."),
    (["Who was Albert Einstein?", "Who is Albert Einstein?"],
     "Albert Einstein was a physicist who found the theory of relativity."),
    (["What is the opposite of north?"], "The opposite of north is south."),
    (["What is pi?", "What is the value of pi?", "How much is pi?"],
     "Pi is about 3.14159."),
    (["What is a prime number?"], "A prime number has exactly two divisors: "
     "1 and itself."),
    (["Name the first five prime numbers.",
      "What are the first five primes?"], "2, 3, 5, 7, 11"),
    (["Is the earth flat?", "Is the earth round?"], "The earth is round."),
    (["Is the sun a star?", "What is the sun?"], "The sun is a star."),
    (["What is the moon?"], "The moon goes around the earth."),
    (["Say the alphabet.", "What is the alphabet?", "Recite the alphabet.",
      "Write the alphabet."],
     "a b c d e f g h i j k l m n o p q r s t u v w x y z"),
    (["List the days of the week.", "Name the days of the week.",
      "What are the days of the week?"],
     "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday"),
    (["List the months of the year.", "Name the months of the year.",
      "What are the months?", "Name the twelve months."],
     "January, February, March, April, May, June, July, August, September, "
     "October, November, December"),
    (["List the seasons.", "Name the four seasons.", "What are the seasons?"],
     "spring, summer, autumn, winter"),
    (["Name the planets.", "List the planets.", "What are the planets?"],
     "Mercury, Venus, Earth, Mars, Jupiter, Saturn, Uranus, Neptune"),
    (["Name three colours.", "List three colors.", "Give me three colours."],
     "red, green, blue"),
    (["Name three fruits.", "List three fruits.", "Give me three fruits."],
     "apple, banana, cherry"),
    (["Name three animals.", "List three animals.", "Give me three animals."],
     "dog, cat, horse"),
    (["Name the primary colours.", "What are the primary colours?",
      "What are the primary colors?"], "red, yellow, blue"),
    (["What are the colours of the rainbow?",
      "Name the colours of the rainbow."],
     "red, orange, yellow, green, blue, indigo, violet"),
    (["Tell me a joke.", "Do you know a joke?", "Make me laugh."],
     "Why did the token cross the ring? To get to the other worker."),
    (["Write a haiku.", "Can you write a haiku?"],
     "A small model speaks,\nits words come one by one now;\nthe server "
     "listens."),
    (["What languages do you speak?", "Which languages do you know?"],
     "I speak a little English."),
    (["What is the meaning of life?"],
     "I am a very small demo model; I do not know that."),
]

SOUNDS = [("dog", "woof"), ("cat", "meow"), ("cow", "moo"), ("sheep", "baa"),
          ("duck", "quack"), ("pig", "oink"), ("horse", "neigh"),
          ("lion", "roar"), ("bee", "buzz"), ("owl", "hoot"),
          ("frog", "ribbit"), ("snake", "hiss"), ("mouse", "squeak")]

OPPOSITES = [("hot", "cold"), ("big", "small"), ("up", "down"),
             ("day", "night"), ("black", "white"), ("fast", "slow"),
             ("old", "young"), ("good", "bad"), ("happy", "sad"),
             ("left", "right"), ("open", "closed"), ("full", "empty"),
             ("high", "low"), ("long", "short"), ("wet", "dry"),
             ("hard", "soft"), ("light", "dark"), ("loud", "quiet"),
             ("rich", "poor"), ("strong", "weak"), ("early", "late"),
             ("true", "false"), ("yes", "no"), ("near", "far"),
             ("in", "out"), ("over", "under"), ("clean", "dirty"),
             ("sweet", "sour"), ("first", "last"), ("always", "never")]

PLURALS = [("mouse", "mice"), ("child", "children"), ("man", "men"),
           ("woman", "women"), ("foot", "feet"), ("tooth", "teeth"),
           ("goose", "geese"), ("person", "people"), ("leaf", "leaves"),
           ("wolf", "wolves"), ("knife", "knives"), ("city", "cities"),
           ("baby", "babies"), ("box", "boxes"), ("fish", "fish"),
           ("sheep", "sheep"), ("dog", "dogs"), ("cat", "cats"),
           ("house", "houses"), ("tree", "trees"), ("apple", "apples")]

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday",
        "Sunday"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July",
          "August", "September", "October", "November", "December"]

MIXES = [("blue", "yellow", "green"), ("red", "blue", "purple"),
         ("red", "yellow", "orange"), ("red", "white", "pink"),
         ("black", "white", "grey"), ("red", "green", "brown")]

NUMBER_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve "
    "thirteen fourteen fifteen sixteen seventeen eighteen nineteen "
    "twenty").split()

NAMES = (
    "Ada Alan Alice Amir Ana Anna Arthur Ben Bob Boris Carla Carlos Cleo Dan "
    "David Diana Eli Ella Emil Emma Eva Fatima Felix Fiona Frank George Grace "
    "Hana Hans Henry Hugo Ida Ines Ivan Jack James Jane Jin John Jonas Julia "
    "Kai Karen Kim Lars Laura Lea Leo Lina Lucas Lucy Maria Mark Marta Max "
    "Maya Mia Mike Mina Nadia Nina Noah Nora Olga Oliver Omar Oscar Paul Peter "
    "Petra Priya Rita Robert Rosa Sam Sara Sofia Stefan Susan Tara Tim Tina "
    "Tom Uma Vera Victor Wei Yara Yuki Zara Zoe Bruno Chloe Dmitri Elena "
    "Gustav Helen Igor Jorge Kofi Luca Mei Nils Otto Pablo Quentin Raj Sven "
    "Theo Ursula Wanda Xavier Yusuf Zane Mallory Sherlock Barbara Linus "
    "Dennis Ken Guido Bjarne Rob Edsger Donald").split()

CITIES = (
    "Paris|London|Berlin|Rome|Madrid|Oslo|Tokyo|Vienna|Lisbon|Prague|Dublin|"
    "Athens|Cairo|Delhi|Mumbai|Beijing|Shanghai|Seoul|Sydney|Melbourne|"
    "New York|Boston|Chicago|San Francisco|Los Angeles|Seattle|Toronto|"
    "Montreal|Mexico City|Lima|Bogotá|Buenos Aires|São Paulo|Santiago|Nairobi|"
    "Lagos|Cape Town|Casablanca|Istanbul|Moscow|Kyiv|Warsaw|Krakow|Budapest|"
    "Bucharest|Sofia|Belgrade|Zagreb|Helsinki|Stockholm|Copenhagen|Hamburg|"
    "Munich|Cologne|Zurich|Geneva|Bern|Brussels|Amsterdam|Rotterdam|Lyon|"
    "Marseille|Nice|Barcelona|Valencia|Porto|Milan|Naples|Venice|Florence|"
    "Edinburgh|Glasgow|Manchester|Liverpool|Bangkok|Hanoi|Singapore|Jakarta|"
    "Manila|Dubai|Tehran|Karachi|Dhaka|Kathmandu|Osaka|Kyoto|Auckland|"
    "Reykjavik|Tallinn|Riga|Vilnius|Denver|Miami|Dallas|Houston|Austin|"
    "Las Vegas|Vancouver|Havana|Bergen|Graz|Salzburg|Leipzig|Dresden|"
    "Bristol|Leeds|Cork|Ghent|Turin|Bologna|Seville|Accra|Dakar|Tunis|"
    "Algiers|Amman|Beirut|Baghdad|Tashkent|Ulaanbaatar|Perth|Brisbane"
).split("|")

CONDITIONS = ["sunny", "cloudy", "rainy", "windy", "foggy", "snowy", "clear",
              "stormy", "partly cloudy", "light rain", "overcast", "hot",
              "cold", "heavy snow", "thunderstorms", "drizzle", "dry"]
