-- The votes of a television show, and the greetings of the hello pair.
CREATE TABLE contestants (
    contestant_number INTEGER NOT NULL,
    contestant_name VARCHAR(50) NOT NULL,
    CONSTRAINT contestants_by_number PRIMARY KEY (contestant_number)
);

CREATE TABLE area_code_state (
    area_code SMALLINT NOT NULL,
    state VARCHAR(2) NOT NULL,
    CONSTRAINT states_by_area_code PRIMARY KEY (area_code)
);

-- Votes have no key: one telephone may vote more than once.
CREATE TABLE votes (
    phone_number BIGINT NOT NULL,
    state VARCHAR(2) NOT NULL,
    contestant_number INTEGER NOT NULL
);
PARTITION TABLE votes ON COLUMN phone_number;

CREATE VIEW v_votes_by_phone_number (phone_number, num_votes)
    AS SELECT phone_number, COUNT(*) FROM votes GROUP BY phone_number;

CREATE VIEW v_votes_by_contestant_number_state (contestant_number, state, num_votes)
    AS SELECT contestant_number, state, COUNT(*) FROM votes GROUP BY contestant_number, state;

CREATE TABLE helloworld (
    hello VARCHAR(15),
    world VARCHAR(15),
    dialect VARCHAR(15) NOT NULL,
    PRIMARY KEY (dialect)
);
PARTITION TABLE helloworld ON COLUMN dialect;

CREATE PROCEDURE FROM CLASS plimsoll.Initialize;
CREATE PROCEDURE PARTITION ON TABLE votes COLUMN phone_number FROM CLASS plimsoll.Vote;
CREATE PROCEDURE FROM CLASS plimsoll.Results;
CREATE PROCEDURE FROM CLASS plimsoll.GetStateHeatmap;
CREATE PROCEDURE FROM CLASS plimsoll.ContestantWinningStates;
CREATE PROCEDURE PARTITION ON TABLE helloworld COLUMN dialect FROM CLASS plimsoll.Insert;
CREATE PROCEDURE PARTITION ON TABLE helloworld COLUMN dialect FROM CLASS plimsoll.Select;
